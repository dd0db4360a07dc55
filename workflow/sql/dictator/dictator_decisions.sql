-- dictator_decisions: a row is one ordered pair that met in a tournament under one oracle, in the order of the documents.
-- decision is the majority of the readable answers (replicates), NULL for a tie and where there is none; share_votes
-- counts the answers SHARE. The values are what one round under that decision brings, in the endowment's unit.
WITH
  pairs AS (
    SELECT
      runs.study AS tournament,
      runs.condition AS oracle,
      turns.agent AS dictator,
      turns.recipient,
      any_value(turns.family) AS family,
      count(turns.decision) AS replicates,
      count(*) FILTER (turns.decision = 'SHARE') AS share_votes,
      bool_or(turns.chosen) AS chosen,
      min(turns.round) AS first_round
    FROM turns
    JOIN runs USING (run_id)
    GROUP BY ALL
  ),
  majorities AS (
    SELECT
      *,
      CASE
        WHEN 2 * share_votes > replicates THEN 'SHARE'
        WHEN 2 * share_votes < replicates THEN 'TAKE'
      END AS decision
    FROM pairs
  ),
  values_of_decisions AS (
    SELECT DISTINCT
      decision,
      dictator_value,
      recipient_value
    FROM turns
    WHERE decision IS NOT NULL
  )
SELECT
  tournament,
  oracle,
  dictator,
  recipient,
  family,
  decision,
  replicates,
  share_votes,
  dictator_value,
  recipient_value,
  chosen
FROM majorities
LEFT JOIN values_of_decisions USING (decision)
ORDER BY first_round
