-- pd_profiles: a row is one player after one kind of round in one condition (opening: the first round; CD: it cooperated
-- and the opponent defected in the round before). cooperation_rate is cooperations over the n rounds that followed such
-- a round, NULL where n is 0 (self-play and void matches left out), with its 95 % bootstrap interval (seeds resampled).
WITH profiles_by_side AS (
  SELECT
    study,
    condition,
    player,
    seed,
    unnest([
      {state: 'opening', n: (first_move IS NOT NULL)::BIGINT, c: coalesce((first_move = 'cooperate')::DOUBLE, 0)},
      {state: 'CC', n: n_cc, c: coalesce(p_c_cc * n_cc, 0)},
      {state: 'CD', n: n_cd, c: coalesce(p_c_cd * n_cd, 0)},
      {state: 'DC', n: n_dc, c: coalesce(p_c_dc * n_dc, 0)},
      {state: 'DD', n: n_dd, c: coalesce(p_c_dd * n_dd, 0)}
    ], recursive := TRUE)
  FROM pd_individual
  WHERE
    outcome <> 'void'
    AND player <> opponent
),
profiles_by_seed AS (
  SELECT
    study,
    condition,
    player,
    state,
    seed,
    sum(n)::DOUBLE AS n,
    round(sum(c))::DOUBLE AS cooperations
  FROM profiles_by_side
  GROUP BY ALL
),
profiles AS (
  SELECT
    study,
    condition,
    player,
    state,
    sum(n)::BIGINT AS n,
    sum(cooperations) / nullif(sum(n), 0) AS cooperation_rate,
    bootstrap_interval(list(cooperations ORDER BY seed), list(n ORDER BY seed)) AS cooperation
  FROM profiles_by_seed
  GROUP BY ALL
)
SELECT
  study,
  condition,
  player,
  state,
  n,
  cooperation_rate,
  cooperation.low AS low,
  cooperation.high AS high
FROM profiles
ORDER BY
  study,
  condition,
  player,
  list_position(['opening', 'CC', 'CD', 'DC', 'DD'], state)
