-- SPDX-License-Identifier: Apache-2.0
-- id: SS403
-- title: Steps take differently long
-- severity: hint
-- needs: step_time.std_ns|what_if.saving_ratio
-- tells if: EXISTS (SELECT 1 FROM what_if WHERE place = 'once') OR (SELECT count >= 10 FROM step_time WHERE process = 'all')
-- cannot tell: fewer than 10 complete steps were recorded
-- threshold: spread = 0.10 (of the mean step: guide 000)
-- threshold: saves = 0.02 (of a step, ours: what the step would be shorter without it)
-- advice: look at the slowest steps in the table steps; sizes of batches that differ, garbage collection, data, another program on
--   the machine
-- wrong: batches differ in size on purpose
SELECT 'step ' || (SELECT step FROM steps WHERE is_program ORDER BY length_ns DESC LIMIT 1) AS place,
       'standard deviation ' || as_share(std_ns / mean_ns) || ' of the mean; median ' || as_time(p50_ns) || ', 95 % of steps below '
         || as_time(p95_ns) || ', the slowest ' || as_time(max_ns) AS evidence,
       CASE WHEN mean_ns > p50_ns THEN mean_ns - p50_ns END AS saving_ns, 0.6 AS confidence, NULL AS advice, NULL AS cut, NULL AS cut_place
FROM step_time WHERE (SELECT count >= 10 FROM step_time WHERE process = 'all') AND process = 'all' AND std_ns > :spread * mean_ns
UNION ALL
SELECT 'step ' || (SELECT step FROM steps WHERE is_program ORDER BY length_ns DESC LIMIT 1),
       'one step has calls or host time that the usual step does not have; without them the mean step takes ' || as_time(w.step_ns), NULL, 0.6,
       'look at what the host does in this step: record with --with lines', w.cut, w.place
FROM what_if w WHERE w.cut = 'host' AND w.place = 'once' AND w.saving_ratio > :saves
  -- between two steps it is SS204's or SS214's
  AND 2 * coalesce((SELECT total_ns FROM between_steps WHERE part = 'between steps: other'), 0)
      < w.saving_ns * (SELECT count FROM step_time WHERE process = 'all')
