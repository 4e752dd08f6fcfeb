-- SPDX-License-Identifier: Apache-2.0
-- id: SS413
-- title: Steps get longer and longer
-- severity: problem
-- needs: what_if.saving_ratio
-- tells if: EXISTS (SELECT 1 FROM what_if)
-- cannot tell: the steps could not be replayed (table what_if says why)
-- threshold: saves = 0.02 (of a step, ours: what the step would be shorter without it)
-- advice: look for a list, a log or a graph that grows with each step, such as losses kept with their graph (use .item() or .detach()),
--   and for work on all results so far
-- wrong: later steps have more work on purpose, such as longer sequences
SELECT 'later steps' AS place,
       'the first steps take ' || as_time(f.mean_ns) || ', the last ' || as_time(l.mean_ns) || '; if all were like the first, the mean step would take '
         || as_time(w.step_ns) AS evidence,
       NULL AS saving_ns, NULL AS confidence, w.cut AS cut
FROM what_if w,
     (SELECT avg(length_ns) AS mean_ns FROM (SELECT length_ns, ntile(8) OVER (ORDER BY start_ns) AS part FROM steps WHERE is_complete) WHERE part = 1) f,
     (SELECT avg(length_ns) AS mean_ns FROM (SELECT length_ns, ntile(8) OVER (ORDER BY start_ns) AS part FROM steps WHERE is_complete) WHERE part = 8) l
WHERE w.cut = 'growth' AND w.saving_ratio > :saves AND NOT EXISTS (SELECT 1 FROM step_breakdown) -- else SS805
