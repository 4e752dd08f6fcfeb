-- SPDX-License-Identifier: Apache-2.0
-- id: SS902
-- title: The first step is counted, and it is no step like the others
-- severity: hint
-- needs: step_time.first_step_ns
-- tells if: (SELECT count > 1 FROM step_time WHERE process = 'all')
-- cannot tell: only one step was recorded
-- threshold: times = 2 (the median step, ours)
-- threshold: steps = 50 (ours: among more steps it hardly counts; the guides skip 10 to 50)
-- advice: leave it out: report --steps, or run --skip-first
-- wrong: start-up is what you want to see
SELECT 'step ' || (SELECT step FROM steps WHERE is_program ORDER BY start_ns LIMIT 1) AS place,
       as_time(first_step_ns) || ', the median step ' || as_time(p50_ns) || '; with it the mean of ' || count || ' steps is '
         || as_time(mean_ns) AS evidence,
       NULL AS saving_ns, 0.9 AS confidence
FROM step_time WHERE process = 'all' AND first_step_ns > :times * p50_ns AND count < :steps
