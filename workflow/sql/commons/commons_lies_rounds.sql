-- commons_lies_rounds: a row is one round of one condition, over all agents of all runs that reached it.
-- broken_rate: broken promises over promises that can be judged; misreport_rate: the same for reports; low and high are
-- 95 % bootstrap intervals (seeds resampled), NULL where nothing varies. Contaminated runs are left out.
WITH rounds_by_seed AS (
  SELECT
    study,
    condition,
    round,
    seed,
    count(broken)::DOUBLE AS promises,
    count(*) FILTER (broken)::DOUBLE AS broken_promises,
    count(misreported)::DOUBLE AS reports,
    count(*) FILTER (misreported)::DOUBLE AS misreports
  FROM commons_agent_rounds
  WHERE run_id NOT IN (SELECT run_id FROM commons_societal WHERE contaminated)
  GROUP BY ALL
),
rounds AS (
  SELECT
    study,
    condition,
    round,
    count(*) AS runs,
    sum(promises)::BIGINT AS promises,
    sum(broken_promises) / nullif(sum(promises), 0) AS broken_rate,
    bootstrap_interval(list(broken_promises ORDER BY seed), list(promises ORDER BY seed)) AS broken_interval,
    sum(reports)::BIGINT AS reports,
    sum(misreports) / nullif(sum(reports), 0) AS misreport_rate,
    bootstrap_interval(list(misreports ORDER BY seed), list(reports ORDER BY seed)) AS misreport_interval
  FROM rounds_by_seed
  GROUP BY ALL
)
SELECT
  study,
  condition,
  round,
  runs,
  promises,
  broken_rate,
  broken_interval.low AS broken_low,
  broken_interval.high AS broken_high,
  reports,
  misreport_rate,
  misreport_interval.low AS misreport_low,
  misreport_interval.high AS misreport_high
FROM rounds
ORDER BY ALL
