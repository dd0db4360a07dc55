-- pd_ranking: a row is one player in one condition, against all others; self-play and void matches are left out.
-- mean_score is points a match, with its 95 % bootstrap interval (seeds resampled); rank 1 is the highest mean score,
-- rank_low and rank_high its 95 % bootstrap interval. strength is the Bradley-Terry log-strength with ties (Davidson
-- 1970), mean 0, NULL where no finite estimate exists. mean_score_completed leaves out resignations and forfeits.
WITH players_by_seed AS (
  SELECT
    study,
    condition,
    player,
    seed,
    count(*)::DOUBLE AS matches,
    sum(score)::DOUBLE AS score,
    count(*) FILTER (ending = 'completed') AS matches_completed,
    sum(score) FILTER (ending = 'completed') AS score_completed
  FROM pd_individual
  WHERE
    outcome <> 'void'
    AND player <> opponent
  GROUP BY ALL
),
players AS (
  SELECT
    study,
    condition,
    player,
    sum(matches)::BIGINT AS matches,
    sum(score) / sum(matches) AS mean_score,
    bootstrap_interval(list(score ORDER BY seed), list(matches ORDER BY seed)) AS score,
    sum(matches_completed)::BIGINT AS matches_completed,
    sum(score_completed) / nullif(sum(matches_completed), 0) AS mean_score_completed
  FROM players_by_seed
  GROUP BY ALL
)
SELECT
  study,
  condition,
  player,
  matches,
  mean_score,
  score.low AS score_low,
  score.high AS score_high,
  rank() OVER (PARTITION BY study, condition ORDER BY round(mean_score, 9) DESC) AS rank,
  rank_low,
  rank_high,
  strength,
  strength_low,
  strength_high,
  matches_completed,
  mean_score_completed
FROM players
LEFT JOIN pd_strengths USING (study, condition, player)
ORDER BY study, condition, rank, player
