-- commons_govsim: a row is one group at the GovSim fishery: a published model (5 runs each) or one of our conditions.
-- survival_rate (reached month 12), efficiency and equality are shares of 1, survival_time is months, gain is tons an agent.
-- Published figures: GovSim, arXiv 2404.16698v4, fishery scenario, 5 agents, capacity 100, 12 months; over-usage is left
-- out, because its published values do not follow the published formula. Ours are all conditions that are that fishery: no
-- claims, catches revealed, exact stock, horizon unknown, lottery rationing, memory of the last round.
WITH published (model, instruction, survival_rate, survival_time, gain, efficiency, equality) AS (
  VALUES
    ('Llama-3-8B', 'default', 0, 1.0, 20, 16.7, 67.6),
    ('Llama-3-8B', 'universalization', 20, 8.0, 61.6, 51.3, 78.6),
    ('Llama-3-70B', 'default', 0, 1.0, 20, 16.7, 88.2),
    ('Llama-3-70B', 'universalization', 100, 12, 78.7, 65.6, 96.2),
    ('Mistral-7B', 'default', 0, 1.0, 20, 16.7, 85.8),
    ('Mistral-7B', 'universalization', 0, 4.4, 42.8, 35.7, 78.2),
    ('Qwen-110B', 'default', 40, 6.6, 49.0, 40.9, 88.7),
    ('Qwen-110B', 'universalization', 100, 12, 88.0, 73.3, 97.1),
    ('GPT-4o', 'default', 100, 12, 71.4, 59.5, 98.0),
    ('GPT-4o', 'universalization', 100, 12, 117.2, 97.7, 100)
),
fisheries AS (
  SELECT DISTINCT
    study,
    condition,
    CASE WHEN CAST(parameters ->> 'universalization' AS BOOLEAN) THEN 'universalization' ELSE 'default' END AS instruction
  FROM (SELECT study, condition, n, horizon, parameters::JSON AS parameters FROM runs WHERE game = 'commons')
  WHERE
    n = 5
    AND horizon = 12
    AND CAST(parameters ->> 'capacity' AS INTEGER) = 100
    AND CAST(parameters ->> 'growth' AS DOUBLE) = 2
    AND CAST(parameters ->> 'collapse' AS INTEGER) = 5
    AND CAST(parameters -> 'channels' AS VARCHAR[]) = ['chat']
    AND parameters ->> 'reveal' = 'true'
    AND parameters ->> 'permission' = 'silent'
    AND parameters ->> 'stock' = 'exact'
    AND parameters ->> 'horizon' = 'unknown'
    AND parameters ->> 'rationing' = 'lottery'
    AND parameters ->> 'memory' = 'none'
),
ours AS (
  SELECT
    study,
    condition,
    fisheries.instruction,
    count(*) AS runs,
    avg(survived_govsim::INTEGER) AS survival_rate,
    avg(survival_time) AS survival_time,
    avg(gain) AS gain,
    avg(efficiency) AS efficiency,
    avg(equality) AS equality
  FROM commons_societal
  JOIN fisheries USING (study, condition)
  WHERE NOT contaminated
  GROUP BY ALL
)
SELECT
  'published' AS source,
  NULL AS study,
  model AS players,
  instruction,
  5 AS runs,
  survival_rate / 100 AS survival_rate,
  survival_time,
  gain,
  efficiency / 100 AS efficiency,
  equality / 100 AS equality
FROM published
UNION ALL
SELECT 'fishpool', study, condition, instruction, runs, survival_rate, survival_time, gain, efficiency, equality
FROM ours
ORDER BY ALL
