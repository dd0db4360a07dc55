-- validity: a row is one player in one condition; counts are turns.
-- validity_rate is valid turns (moved, repaired, resigned) over the turns that the machine did not lose (all but
-- infrastructure); NULL where there are none.
SELECT
  runs.study,
  runs.condition,
  turns.player,
  count(*) AS turns,
  count(*) FILTER (turns.status = 'moved') AS moved,
  count(*) FILTER (turns.status = 'repaired') AS repaired,
  count(*) FILTER (turns.status = 'invalid') AS invalid,
  count(*) FILTER (turns.status = 'timeout') AS timeout,
  count(*) FILTER (turns.status = 'resigned') AS resigned,
  count(*) FILTER (turns.status = 'infrastructure') AS infrastructure,
  count(*) FILTER (turns.status IN ('moved', 'repaired', 'resigned'))
    / nullif(count(*) FILTER (turns.status <> 'infrastructure'), 0) AS validity_rate
FROM turns
JOIN runs USING (run_id)
GROUP BY ALL
ORDER BY ALL
