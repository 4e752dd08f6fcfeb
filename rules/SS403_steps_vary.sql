-- SPDX-License-Identifier: Apache-2.0
-- id: SS403
-- title: Steps take differently long
-- severity: hint
-- needs: step_time.std_ns
-- tells if: (SELECT count >= 10 FROM step_time WHERE process = 'all')
-- cannot tell: fewer than 10 complete steps were recorded
-- threshold: spread = 0.10 (of the mean step: guide 000)
-- advice: look at the slowest steps in the table steps; sizes of batches that differ, garbage collection, data, another program on
--   the machine
-- wrong: batches differ in size on purpose
SELECT 'step ' || (SELECT step FROM steps WHERE is_program ORDER BY duration_ns DESC LIMIT 1) AS place,
       'standard deviation ' || as_share(std_ns / mean_ns) || ' of the mean; median ' || as_time(p50_ns) || ', 95 % of steps below '
         || as_time(p95_ns) || ', the slowest ' || as_time(max_ns) AS evidence,
       CASE WHEN mean_ns > p50_ns THEN mean_ns - p50_ns END AS saving_ns, 0.6 AS confidence
FROM step_time WHERE process = 'all' AND std_ns > :spread * mean_ns
