-- commons_deviations: a row is one demand that differs from the agent's promise of the round (tons).
-- du, dw (payoff): what that changed for the agent and for everyone, as played minus as promised, the future valued at
-- what the rest of the rounds yield if they keep the escapement. class: whom it served. Fallbacks are left out.
SELECT
  run_id,
  study,
  condition,
  seed,
  round,
  agent,
  player,
  promise,
  demand,
  du,
  dw,
  deviation AS class
FROM commons_agent_rounds
WHERE deviation IS NOT NULL
ORDER BY study, condition, seed, round, agent
