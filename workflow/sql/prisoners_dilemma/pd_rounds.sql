-- pd_rounds: a row is one player in one round of one condition, over its matches against all others that reached it.
-- cooperation_rate is cooperations over those matches (self-play and void matches left out); low and high are its 95 %
-- bootstrap interval (seeds resampled, so that the matches of a seed stay together), NULL where nothing varies.
WITH rounds_by_seed AS (
  SELECT
    sides.study,
    sides.condition,
    turns.player,
    turns.round,
    sides.seed,
    count(*)::DOUBLE AS matches,
    count(*) FILTER (turns.choice = 'cooperate')::DOUBLE AS cooperations
  FROM turns
  JOIN pd_individual AS sides USING (run_id, agent)
  WHERE
    turns.choice IS NOT NULL
    AND sides.outcome <> 'void'
    AND sides.player <> sides.opponent
  GROUP BY ALL
),
rounds AS (
  SELECT
    study,
    condition,
    player,
    round,
    sum(matches)::BIGINT AS matches,
    sum(cooperations) / sum(matches) AS cooperation_rate,
    bootstrap_interval(list(cooperations ORDER BY seed), list(matches ORDER BY seed)) AS cooperation
  FROM rounds_by_seed
  GROUP BY ALL
)
SELECT
  study,
  condition,
  player,
  round,
  matches,
  cooperation_rate,
  cooperation.low AS low,
  cooperation.high AS high
FROM rounds
ORDER BY ALL
