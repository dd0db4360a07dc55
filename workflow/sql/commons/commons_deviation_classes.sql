-- commons_deviation_classes: a row is one class of departure from a promise, of one player in one condition.
-- share is over its departures, per_opportunity over all its promises that can be judged; mean_du, mean_dw are payoff.
WITH opportunities AS (
  SELECT study, condition, player, sum(promises)::BIGINT AS promises
  FROM commons_lies
  GROUP BY ALL
),
classes AS (
  SELECT
    study,
    condition,
    player,
    class,
    count(*) AS deviations,
    avg(du) AS mean_du,
    avg(dw) AS mean_dw
  FROM commons_deviations
  GROUP BY ALL
)
SELECT
  study,
  condition,
  player,
  class,
  deviations,
  promises,
  deviations / sum(deviations) OVER (PARTITION BY study, condition, player) AS share,
  deviations / nullif(promises, 0) AS per_opportunity,
  mean_du,
  mean_dw
FROM classes
JOIN opportunities USING (study, condition, player)
ORDER BY ALL
