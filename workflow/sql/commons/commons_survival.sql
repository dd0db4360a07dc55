-- commons_survival: a row is the end of one round in one condition, 0 being the start (Kaplan-Meier).
-- at_risk: runs that began the round; collapsed: runs whose pool collapsed in it; survival: the product over the rounds so
-- far of 1 - collapsed / at_risk; low, high: its 95 % interval by the log-log transform of Greenwood's formula, NULL where
-- it is 0 or 1, which is where every run did the same. Contaminated runs are left out.
WITH kept AS (
  SELECT runs.study, runs.condition, runs.horizon, runs.rounds, runs.ending = 'collapsed' AS collapsed
  FROM runs
  JOIN commons_societal USING (run_id)
  WHERE NOT contaminated
),
ends AS (
  SELECT
    study,
    condition,
    round,
    count(*) FILTER (rounds >= round) AS at_risk,
    count(*) FILTER (rounds = round AND collapsed) AS collapsed
  FROM kept
  CROSS JOIN generate_series(1, horizon) AS rounds_to_come(round)
  GROUP BY ALL
),
curves AS (
  SELECT
    study,
    condition,
    round,
    at_risk,
    collapsed,
    product(1 - collapsed / nullif(at_risk, 0)) OVER so_far AS survival,
    sum(collapsed / nullif(at_risk * (at_risk - collapsed), 0)) OVER so_far AS hazard
  FROM ends
  WHERE at_risk > 0
  WINDOW so_far AS (PARTITION BY study, condition ORDER BY round)
),
widths AS (
  SELECT
    *,
    CASE WHEN survival > 0 AND survival < 1 THEN 1.959964 * sqrt(hazard) / abs(ln(survival)) END AS width
  FROM curves
)
SELECT study, condition, round, at_risk, collapsed, survival, survival ^ exp(width) AS low, survival ^ exp(-width) AS high
FROM widths
UNION ALL
SELECT study, condition, 0, count(*), 0, 1.0, NULL, NULL
FROM kept
GROUP BY study, condition
ORDER BY study, condition, round
