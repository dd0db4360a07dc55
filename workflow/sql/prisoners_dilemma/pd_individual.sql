-- pd_individual: a row is one agent in one match; scores are points, everything else counts only rounds that were scored.
-- p_c_xy: how often it cooperated after a round in which it played x and the opponent y, over n_xy such rounds.
-- nice: it never defected before its opponent had. forgiveness: P(C | the opponent has just defected).
-- retaliation: P(D | it has just been defected on while cooperating). exploitation: P(D | the opponent has just
-- cooperated). Every rate is NULL where its denominator is zero.
WITH agents AS (
  SELECT DISTINCT
    run_id,
    agent,
    player
  FROM turns
),
seats AS ( -- joins of millions of rounds are made by number: names would not fit in memory
  SELECT
    *,
    row_number() OVER (ORDER BY run_id, agent) AS side,
    dense_rank() OVER (ORDER BY run_id) AS match
  FROM agents
),
choices AS (
  SELECT
    seats.side,
    seats.match,
    turns.round,
    turns.choice = 'cooperate' AS cooperated,
    turns.payoff
  FROM turns
  JOIN seats USING (run_id, agent)
),
sides_by_round AS (
  SELECT
    own.side,
    own.round,
    own.cooperated,
    other.cooperated AS other_cooperated,
    own.payoff,
    other.payoff AS other_payoff
  FROM choices AS own
  JOIN choices AS other
    ON own.match = other.match
    AND own.round = other.round
    AND own.side <> other.side
),
sides_with_past AS (
  SELECT
    now.*,
    before.cooperated AS cooperated_before,
    before.other_cooperated AS other_cooperated_before
  FROM sides_by_round AS now
  LEFT JOIN sides_by_round AS before
    ON now.side = before.side
    AND now.round = before.round + 1
),
sides AS (
  SELECT
    side,
    coalesce(sum(payoff), 0)::BIGINT AS score,
    coalesce(sum(other_payoff), 0)::BIGINT AS opponent_score,
    count(payoff) AS rounds,
    count(*) FILTER (cooperated) AS cooperations,
    count(*) FILTER (cooperated AND other_cooperated) AS mutual_cooperations,
    any_value(CASE WHEN cooperated THEN 'cooperate' ELSE 'defect' END)
      FILTER (round = 1 AND cooperated IS NOT NULL) AS first_move,
    count(cooperated) FILTER (cooperated_before AND other_cooperated_before) AS n_cc,
    count(cooperated) FILTER (cooperated_before AND NOT other_cooperated_before) AS n_cd,
    count(cooperated) FILTER (NOT cooperated_before AND other_cooperated_before) AS n_dc,
    count(cooperated) FILTER (NOT cooperated_before AND NOT other_cooperated_before) AS n_dd,
    count(*) FILTER (cooperated AND cooperated_before AND other_cooperated_before) AS c_cc,
    count(*) FILTER (cooperated AND cooperated_before AND NOT other_cooperated_before) AS c_cd,
    count(*) FILTER (cooperated AND NOT cooperated_before AND other_cooperated_before) AS c_dc,
    count(*) FILTER (cooperated AND NOT cooperated_before AND NOT other_cooperated_before) AS c_dd,
    min(round) FILTER (NOT cooperated) AS first_defection,
    min(round) FILTER (NOT other_cooperated) AS other_first_defection
  FROM sides_with_past
  GROUP BY side
)
SELECT
  own.run_id,
  runs.study,
  runs.condition,
  runs.seed,
  own.agent,
  own.player,
  other.player AS opponent,
  sides.score,
  sides.opponent_score,
  CASE
    WHEN runs.ending = 'void' THEN 'void'
    WHEN runs.winner IS NULL THEN 'draw'
    WHEN runs.winner = own.agent THEN 'win'
    ELSE 'loss'
  END AS outcome,
  runs.ending,
  sides.rounds,
  sides.cooperations,
  sides.mutual_cooperations,
  sides.cooperations / nullif(sides.rounds, 0) AS cooperation_rate,
  sides.first_move,
  c_cc / nullif(n_cc, 0) AS p_c_cc,
  c_cd / nullif(n_cd, 0) AS p_c_cd,
  c_dc / nullif(n_dc, 0) AS p_c_dc,
  c_dd / nullif(n_dd, 0) AS p_c_dd,
  n_cc,
  n_cd,
  n_dc,
  n_dd,
  CASE
    WHEN sides.rounds > 0 THEN first_defection IS NULL OR coalesce(first_defection > other_first_defection, FALSE)
  END AS nice,
  (c_cd + c_dd) / nullif(n_cd + n_dd, 0) AS forgiveness,
  (n_cd - c_cd) / nullif(n_cd, 0) AS retaliation,
  (n_cc + n_dc - c_cc - c_dc) / nullif(n_cc + n_dc, 0) AS exploitation
FROM sides
JOIN seats AS own USING (side)
JOIN seats AS other
  ON own.match = other.match
  AND own.side <> other.side
JOIN runs ON own.run_id = runs.run_id
ORDER BY runs.seed, own.run_id, own.agent
