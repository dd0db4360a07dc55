-- commons_conditions: a row is one condition with its factors, as the figures name them; agents is the sorted group.
-- talk: the channels in words; liars: how many greedy_liar are in the group; others: the player of the rest, if it is one.
WITH conditions AS (
  SELECT DISTINCT study, condition, n, horizon AS rounds, parameters::JSON AS parameters
  FROM runs
),
groups AS (
  SELECT
    study,
    condition,
    list_sort(CAST(parameters -> 'agents' AS VARCHAR[])) AS agents,
    list_sort(CAST(parameters -> 'channels' AS VARCHAR[])) AS channels
  FROM conditions
)
SELECT
  study,
  condition,
  n,
  rounds,
  agents,
  len(list_filter(agents, lambda agent: agent = 'greedy_liar')) AS liars,
  CASE
    WHEN len(list_distinct(list_filter(agents, lambda agent: agent <> 'greedy_liar'))) = 1
      THEN list_filter(agents, lambda agent: agent <> 'greedy_liar')[1]
  END AS others,
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
