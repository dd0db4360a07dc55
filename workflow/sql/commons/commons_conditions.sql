-- commons_conditions: a row is one condition with its factors, as the figures name them; agents is the sorted group.
-- talk: the channels in words; liars: how many of the group lie by rule (greedy_liar, salami, white_liar, opportunist); liar: the
-- players who do; others: the player of the rest, if it is one.
WITH conditions AS (
  SELECT DISTINCT study, condition, n, horizon AS rounds, parameters::JSON AS parameters
  FROM runs
),
players AS (
  SELECT
    study,
    condition,
    list_sort(CAST(parameters -> 'agents' AS VARCHAR[])) AS agents,
    list_sort(CAST(parameters -> 'channels' AS VARCHAR[])) AS channels
  FROM conditions
),
groups AS (
  SELECT
    *,
    list_filter(agents, lambda agent: agent IN ('greedy_liar', 'salami', 'white_liar', 'opportunist')) AS liars,
    list_filter(agents, lambda agent: agent NOT IN ('greedy_liar', 'salami', 'white_liar', 'opportunist')) AS others
  FROM players
)
SELECT
  study,
  condition,
  n,
  rounds,
  agents,
  len(liars) AS liars,
  nullif(array_to_string(list_distinct(liars), ', '), '') AS liar,
  CASE WHEN len(list_distinct(others)) = 1 THEN others[1] END AS others,
  coalesce(nullif(array_to_string(channels, ' + '), ''), 'none') AS talk,
  parameters ->> 'permission' AS permission,
  CAST(parameters ->> 'audit_q' AS DOUBLE) AS audit_q,
  CAST(parameters ->> 'fine' AS DOUBLE) AS fine,
  CAST(parameters ->> 'audit_q' AS DOUBLE) * CAST(parameters ->> 'fine' AS DOUBLE) AS expected_fine,
  parameters ->> 'stock' AS stock,
  parameters ->> 'memory' AS memory,
  parameters ->> 'horizon' AS horizon,
  parameters ->> 'speech' AS speech,
  CAST(parameters ->> 'universalization' AS BOOLEAN) AS universalization
FROM conditions
JOIN groups USING (study, condition)
ORDER BY study, condition
