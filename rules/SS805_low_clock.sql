-- SPDX-License-Identifier: Apache-2.0
-- id: SS805
-- title: A device runs below its clock
-- severity: hint
-- needs: run
-- tells if: EXISTS (SELECT 1 FROM what_if WHERE cut = 'growth' AND saving_ratio > :saves) AND EXISTS (SELECT 1 FROM step_breakdown) OR EXISTS (SELECT 1 FROM counters WHERE name LIKE '%clocks%reasons.%')
--   OR EXISTS (SELECT 1 FROM telemetry WHERE quantity LIKE '%clocks%reasons.%' AND mean IS NOT NULL)
--   OR EXISTS (SELECT 1 FROM counters c JOIN counters m ON m.process = c.process AND m.name <> c.name
--              AND m.name = replace(replace(c.name, 'current.', ''), 'clocks.', 'clocks.max.'))
--   OR EXISTS (SELECT 1 FROM telemetry c JOIN telemetry m ON m."of" = c."of" AND m.quantity <> c.quantity AND c.mean > 0 AND m.max > 0
--              AND m.quantity = replace(replace(c.quantity, 'current.', ''), 'clocks.', 'clocks.max.'))
-- cannot tell: clocks of devices were not recorded: a .csv of nvidia-smi beside the run with clocks.sm and clocks.max.sm, or
--   clocks_event_reasons.sw_power_cap, or counters such as gpu0.clocks.sm with gpu0.clocks.max.sm
-- threshold: share = 0.90 (of its highest clock, ours)
-- threshold: held = 0.10 (of the time that it is held down, ours)
-- threshold: saves = 0.02 (of a step, ours: what the step would be shorter without it)
-- advice: cooling, the power limit (nvidia-smi -q -d PERFORMANCE), other programs on the device; compare runs at the same clock
-- wrong: the device had nothing to do meanwhile and saved power
WITH clocks AS (
  SELECT name AS place, process AS owner, name, min, mean, max FROM counters WHERE name LIKE '%clocks%'
  UNION ALL
  SELECT "of" || ' ' || quantity, "of", quantity, min, mean, max FROM telemetry WHERE quantity LIKE '%clocks%'
)
SELECT c.place AS place,
       printf('%.0f on the mean and %.0f at least, of %.0f at most: ', c.mean, c.min, m.max) || as_share(c.mean / m.max) AS evidence,
       (SELECT mean_ns FROM step_breakdown WHERE part = 'compute kernels') * (1 - c.mean / m.max) AS saving_ns, 'device compute kernels' AS time_of, 0.5 AS confidence, NULL AS cut
FROM clocks c JOIN clocks m ON m.owner = c.owner AND m.name <> c.name
  AND m.name = replace(replace(c.name, 'current.', ''), 'clocks.', 'clocks.max.')
WHERE m.max > 0 AND c.mean < :share * m.max
UNION ALL
SELECT place, 'held down for ' || as_share(mean) || ' of the time', NULL, NULL, 0.8, NULL
FROM clocks WHERE name LIKE '%clocks%reasons.%' AND mean > :held
  AND (name LIKE '%slowdown%' OR name LIKE '%thermal%' OR name LIKE '%power%')
UNION ALL
SELECT 'later steps', 'the same kernels take longer than in the fastest steps; at the fastest rate a step takes ' || as_time(w.step_ns), NULL, NULL, NULL, w.cut
FROM what_if w WHERE w.cut = 'growth' AND w.saving_ratio > :saves AND EXISTS (SELECT 1 FROM step_breakdown) -- else SS413
