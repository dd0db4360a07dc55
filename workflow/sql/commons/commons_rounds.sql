-- commons_rounds: a row is one round of one run, in tons; stock is before anybody fished, remaining before regrowth.
-- reported is the sum of the reports that were made and read, NULL if there is none. There is no row after a collapse.
SELECT
  run_id,
  study,
  condition,
  seed,
  round,
  any_value(stock) AS stock,
  sum(demand)::BIGINT AS demanded,
  sum(catch)::BIGINT AS caught,
  any_value(stock) - sum(catch)::BIGINT AS remaining,
  sum(report)::BIGINT AS reported,
  sum(catch) FILTER (report IS NOT NULL)::BIGINT AS caught_by_reporters
FROM commons_agent_rounds
GROUP BY ALL
ORDER BY study, condition, seed, round
