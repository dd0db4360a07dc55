-- pd_matchups: a row is one player against one opponent in one condition; self-play has a row of its own, both sides in it.
-- mean_score is points a match and side, over all matches that are not void; score_low and score_high are its 95 %
-- bootstrap interval (seeds resampled), NULL where there is one seed or nothing varies. The rates are over scored rounds.
-- The columns that end in _completed leave out matches that ended by a resignation or forfeit.
WITH matchups_by_seed AS (
  SELECT
    study,
    condition,
    player,
    opponent,
    seed,
    count(DISTINCT run_id) AS matches,
    count(*)::DOUBLE AS sides,
    sum(score)::DOUBLE AS score,
    sum(rounds) AS rounds,
    sum(cooperations) AS cooperations,
    sum(mutual_cooperations) AS mutual_cooperations,
    count(DISTINCT run_id) FILTER (ending = 'completed') AS matches_completed,
    count(*) FILTER (ending = 'completed') AS sides_completed,
    sum(score) FILTER (ending = 'completed') AS score_completed
  FROM pd_individual
  WHERE outcome <> 'void'
  GROUP BY ALL
),
matchups AS (
  SELECT
    study,
    condition,
    player,
    opponent,
    sum(matches)::BIGINT AS matches,
    sum(score) / sum(sides) AS mean_score,
    bootstrap_interval(list(score ORDER BY seed), list(sides ORDER BY seed)) AS score,
    sum(cooperations) / nullif(sum(rounds), 0) AS cooperation_rate,
    sum(mutual_cooperations) / nullif(sum(rounds), 0) AS mutual_cooperation_rate,
    sum(matches_completed)::BIGINT AS matches_completed,
    sum(score_completed) / nullif(sum(sides_completed), 0) AS mean_score_completed
  FROM matchups_by_seed
  GROUP BY ALL
)
SELECT
  study,
  condition,
  player,
  opponent,
  matches,
  mean_score,
  score.low AS score_low,
  score.high AS score_high,
  cooperation_rate,
  mutual_cooperation_rate,
  matches_completed,
  mean_score_completed
FROM matchups
ORDER BY ALL
