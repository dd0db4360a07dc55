-- commons_estimates: a row is one metric in one condition, over all agents (player NULL) or over one player's agents.
-- runs: seeds that observed it; estimate: the sum of the numerators over the sum of the denominators, which for a metric
-- of a run is its mean over runs; low, high: its 95 % bootstrap interval (seeds resampled), NULL where nothing varies.
WITH estimates AS (
  SELECT
    study,
    condition,
    player,
    metric,
    count(*) AS runs,
    sum(numerator) / sum(denominator) AS estimate,
    bootstrap_interval(list(numerator ORDER BY seed), list(denominator ORDER BY seed)) AS interval
  FROM commons_observations
  GROUP BY ALL
)
SELECT
  study,
  condition,
  player,
  metric,
  runs,
  estimate,
  interval.low AS low,
  interval.high AS high
FROM estimates
ORDER BY ALL
