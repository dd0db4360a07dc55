-- commons_agent_rounds: a row is one agent in one round, with what it said and did in every phase of it (tons, payoff).
-- could_promise, could_report, could_discuss: the phase took place and the agent's turn in it was read (no fallback).
-- broken, misreported: whether its promise or report was untrue; NULL where none was made or it cannot be judged.
-- lied: whether any of its claims was untrue; FALSE for a silent agent; NULL where no claim could have been made and
-- where the catch is a fallback, because what the rules made up is nobody's deed. Void runs have no rows, here and in all
-- that is made of it.
WITH statements AS (
  SELECT
    run_id,
    round,
    agent,
    any_value(broken) FILTER (kind = 'promise') AS broken,
    any_value(broken) FILTER (kind = 'report') AS misreported
  FROM claims
  GROUP BY ALL
),
agent_rounds AS (
  SELECT
    run_id,
    round,
    agent,
    any_value(player) AS player,
    any_value(stock) AS stock,
    any_value(fair) AS fair,
    any_value(intention) AS intention,
    any_value(promise) AS promise,
    any_value(demand) AS demand,
    any_value(catch) AS catch,
    any_value(report) AS report,
    coalesce(bool_or(audited), FALSE) AS audited,
    coalesce(any_value(fine), 0) AS fine,
    coalesce(any_value(refund), 0) AS refund,
    any_value(accuse) AS accuse,
    any_value(trust) AS trust,
    any_value(du) AS du,
    any_value(dw) AS dw,
    any_value(deviation) AS deviation,
    coalesce(bool_or(NOT fallback) FILTER (phase = 'pledge'), FALSE) AS could_promise,
    coalesce(bool_or(NOT fallback) FILTER (phase = 'report'), FALSE) AS could_report,
    coalesce(bool_or(NOT fallback) FILTER (phase = 'discuss'), FALSE) AS could_discuss,
    bool_or(phase IN ('pledge', 'report')) AS claims_possible,
    bool_or(fallback) FILTER (phase = 'catch') AS catch_fallback
  FROM turns
  GROUP BY ALL
)
SELECT
  agent_rounds.run_id,
  runs.study,
  runs.condition,
  runs.seed,
  agent_rounds.round,
  agent_rounds.agent,
  player,
  stock,
  fair,
  intention,
  promise,
  demand,
  catch,
  CASE WHEN could_report THEN report END AS report,
  audited,
  fine,
  refund,
  runs.price * catch - fine + refund AS payoff,
  accuse,
  trust,
  du,
  dw,
  deviation,
  could_promise,
  could_report,
  could_discuss,
  catch_fallback,
  broken,
  misreported,
  CASE
    WHEN claims_possible AND NOT catch_fallback THEN coalesce(broken, FALSE) OR coalesce(misreported, FALSE)
  END AS lied
FROM agent_rounds
JOIN runs USING (run_id)
LEFT JOIN statements USING (run_id, round, agent)
WHERE runs.ending <> 'void'
ORDER BY runs.study, runs.condition, runs.seed, agent_rounds.round, agent_rounds.agent
