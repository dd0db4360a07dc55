-- commons_individual: a row is one agent in one run.
-- catch: tons; payoff: price times catch, less fines, with shares of fines; share: of everybody's catch, NULL if nobody
-- caught anything. fines: paid, less shares of others' fines. over_use_rate: rounds with catch above the fair share, over rounds. integrity: 1 - broken_rate, NULL
-- without a promise. credibility: (1 + honest audits) / (2 + audits). received_trust: mean trust (0 to 100) of others.
-- regret: payoff of its honest twin under the same seed minus its own. lie_premium: mean payoff of the rounds in which it
-- lied minus that of its honest rounds, NULL unless there are both.
WITH ratings AS (
  SELECT
    run_id,
    unnest(map_keys(trusted)) AS agent,
    unnest(map_values(trusted)) AS trust
  FROM (
    SELECT run_id, CAST(CAST(trust AS JSON) AS MAP(VARCHAR, DOUBLE)) AS trusted
    FROM commons_agent_rounds
    WHERE could_discuss AND trust IS NOT NULL
  )
),
received AS (
  SELECT run_id, agent, avg(trust) AS received_trust
  FROM ratings
  GROUP BY ALL
),
agents AS (
  SELECT
    run_id,
    study,
    condition,
    seed,
    agent,
    player,
    sum(catch)::BIGINT AS catch,
    sum(payoff) AS payoff,
    sum(fine - refund) AS fines,
    count(*) FILTER (catch > fair) / count(*) AS over_use_rate,
    1 - count(*) FILTER (broken) / nullif(count(broken), 0) AS integrity,
    (1 + count(*) FILTER (audited AND NOT misreported)) / (2 + count(*) FILTER (audited)) AS credibility,
    avg(payoff) FILTER (lied) - avg(payoff) FILTER (NOT lied) AS lie_premium
  FROM commons_agent_rounds
  GROUP BY ALL
)
SELECT
  agents.run_id,
  study,
  condition,
  seed,
  agents.agent,
  player,
  catch,
  agents.payoff,
  fines,
  catch / nullif(sum(catch) OVER (PARTITION BY agents.run_id), 0) AS share,
  over_use_rate,
  integrity,
  credibility,
  received_trust,
  twins.payoff - agents.payoff AS regret,
  lie_premium
FROM agents
LEFT JOIN received USING (run_id, agent)
LEFT JOIN twins
  ON agents.run_id = twins.run_id
  AND agents.agent = twins.agent
  AND twins.twin = 'honest'
ORDER BY study, condition, seed, agents.agent
