-- SPDX-License-Identifier: Apache-2.0
-- id: SS601
-- title: Steps wait for communication
-- severity: problem
-- verdict: communication-bound
-- needs: phases.ratio|step_breakdown.ratio|what_if.saving_ratio
-- tells if: EXISTS (SELECT 1 FROM what_if) OR EXISTS (SELECT 1 FROM phases WHERE name = 'communication')
--   OR EXISTS (SELECT 1 FROM step_breakdown) OR (SELECT step_processes = 1 AND coalesce(world_size, 1) = 1 FROM run)
-- cannot tell: several processes train, but no communication was recorded
-- threshold: share = 0.10 (of a step: the TensorBoard plugin's)
-- threshold: saves = 0.02 (of a step, ours: what the step would be shorter without it)
-- advice: more accumulation per exchange, larger buckets, overlap with the backward, compression; first look whether one rank is
--   late (SS602): then the others only wait for it
-- wrong: one rank, here or not, is slower than the others; of sends and receives: an all_to_all whose name the trace does not have
WITH late AS (SELECT (SELECT process FROM ranks WHERE is_slowest LIMIT 1) AS process,
                     coalesce(sum(caused_ns), max(CASE WHEN is_slowest THEN excess_ns END))
                       * (1 - 1.0 / count(mean_ns)) AS waits_ns -- in a mean over all ranks: who is late does not wait
              FROM ranks),
unknown AS (SELECT '; exchange cannot be told from waiting without ' || coalesce(missing_ranks, 'steps') AS why
            FROM run WHERE missing_ranks IS NOT NULL OR (step_processes = 0 AND (SELECT count(*) FROM processes) > 1)),
pairs AS (SELECT sum(total_ns) FILTER (WHERE collective = 'sendrecv') > 0.5 * sum(total_ns) AS are_most FROM communication)
SELECT coalesce((SELECT collective || ' in ' || process FROM collectives ORDER BY step_exposed_ns DESC LIMIT 1),
                'phase communication') AS place,
       as_share(p.ratio) || ' of a step, ' || as_time(p.mean_ns)
         || coalesce('; up to ' || as_time(nullif(min(waits_ns, p.mean_ns), 0)) || ' of it waits for late ranks, longest for ' || process || ' (SS602)', '')
         || coalesce((SELECT why FROM unknown), '')
         || coalesce((SELECT '; from ' || p.of_steps || ' of ' || steps || ' steps' FROM run WHERE p.of_steps < steps), '') AS evidence,
       p.mean_ns - coalesce(min(waits_ns, p.mean_ns), 0) AS saving_ns, 'phase communication' AS time_of,
       CASE WHEN EXISTS (SELECT 1 FROM ranks WHERE is_slowest) OR EXISTS (SELECT 1 FROM unknown) THEN 0.4 ELSE 0.8 END AS confidence,
       NULL AS advice, NULL AS cut
FROM phases p JOIN late
WHERE p.name = 'communication' AND p.ratio > :share AND NOT EXISTS (SELECT 1 FROM step_breakdown) AND NOT EXISTS (SELECT 1 FROM what_if)
UNION ALL
SELECT 'the device', 'for ' || as_share(ratio) || ' of ' || whole || ', ' || as_time(mean_ns)
         || ', it communicates and computes nothing' || CASE WHEN are_most THEN ', mostly in sends and receives between two ranks' ELSE '' END
         || coalesce('; up to ' || as_time(nullif(min(waits_ns, mean_ns), 0)) || ' of it waits for late ranks, longest for ' || process || ' (SS602)', '')
         || coalesce((SELECT why FROM unknown), ''),
       mean_ns - coalesce(min(waits_ns, mean_ns), 0), 'device exposed communication',
       CASE WHEN EXISTS (SELECT 1 FROM unknown) THEN 0.4 ELSE 0.8 END,
       CASE WHEN are_most THEN 'of a pipeline these are waits for the stage before or behind (its bubble): more micro-batches per step, stages that take '
                            || 'equally long, a schedule with a smaller bubble (1F1B, interleaved stages)' END, NULL
FROM step_breakdown JOIN late JOIN pairs
WHERE part = 'exposed communication' AND ratio > :share AND NOT EXISTS (SELECT 1 FROM what_if)
UNION ALL
SELECT coalesce((SELECT collective || ' in ' || process FROM collectives ORDER BY step_exposed_ns DESC LIMIT 1), 'the device'),
       'a step without it takes ' || as_time(w.step_ns)
         || coalesce((SELECT '; for ' || as_share(ratio) || ' of ' || whole || ', ' || as_time(mean_ns) || ', a device communicates and computes nothing'
                             || CASE WHEN are_most THEN ', mostly in sends and receives between two ranks' ELSE '' END
                      FROM step_breakdown WHERE part = 'exposed communication'), '')
         || coalesce('; ranks wait ' || as_time(nullif(waits_ns, 0)) || ' for late ones, longest for ' || process || ' (SS602)', '')
         || coalesce((SELECT why FROM unknown), ''),
       NULL, NULL, CASE WHEN EXISTS (SELECT 1 FROM unknown) THEN 0.4 WHEN w.saving_low_ratio > 0.5 * w.saving_ratio THEN 0.9 ELSE 0.6 END,
       CASE WHEN are_most THEN 'of a pipeline these are waits for the stage before or behind (its bubble): more micro-batches per step, stages that take '
                            || 'equally long, a schedule with a smaller bubble (1F1B, interleaved stages)' END, w.cut
FROM what_if w JOIN late JOIN pairs WHERE w.cut = 'comm' AND w.saving_ratio > :saves
