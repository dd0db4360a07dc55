-- commons_deviation_points: a row is one value of (du, dw) with its class, of one player in one condition (payoff).
-- deviations counts the departures from a promise that had it, share is over all departures of the player in the condition.
SELECT
  study,
  condition,
  player,
  class,
  du,
  dw,
  count(*) AS deviations,
  count(*) / sum(count(*)) OVER (PARTITION BY study, condition, player) AS share
FROM commons_deviations
GROUP BY study, condition, player, class, du, dw
ORDER BY ALL
