-- SPDX-License-Identifier: Apache-2.0
-- id: SS412
-- title: Steps wait for code outside of operators
-- severity: problem
-- verdict: host-bound
-- needs: what_if.saving_ratio
-- tells if: EXISTS (SELECT 1 FROM what_if)
-- cannot tell: the steps could not be replayed (table what_if says why)
-- threshold: saves = 0.02 (of a step, ours: what the step would be shorter without it)
-- advice: do it less often or once, outside of the loop; replace loops of Python by operators on whole tensors. --with lines shows
--   the line, and record_function() names a part of the loop
-- wrong: the program sleeps there in place of work that it needs
WITH places AS (SELECT coalesce(line, coalesce(inside || ', ', '') || 'between ' || "after" || ' and ' || "before") AS place, count, steps, p50_ns
                FROM host_stretches WHERE NOT is_between ORDER BY total_ns DESC LIMIT 1),
     others AS (SELECT count(*) - 1 AS count FROM host_stretches WHERE NOT is_between)
SELECT coalesce((SELECT place FROM places), 'long stretches of the host') AS place,
       coalesce((SELECT as_count(p.count, 'stretch') || ' in ' || p.steps || ' steps, ' || as_time(p.p50_ns) || ' in the median'
                        || CASE WHEN o.count > 0 THEN '; ' || as_count(o.count, 'other place') || ' in table host_stretches' ELSE '' END || '; '
                 FROM places p JOIN others o), '')
         || 'a step without it takes ' || as_time(w.step_ns) AS evidence,
       NULL AS saving_ns, NULL AS confidence, w.cut AS cut
FROM what_if w WHERE w.cut = 'host' AND w.place IS NULL AND w.saving_ratio > :saves AND NOT EXISTS (SELECT 1 FROM step_breakdown) -- else SS205
