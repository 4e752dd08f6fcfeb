-- SPDX-License-Identifier: Apache-2.0
-- id: SS214
-- title: A callback at the end of an epoch takes long
-- severity: problem
-- verdict: host-bound
-- needs: step_time.mean_ns
-- tells if: EXISTS (SELECT 1 FROM between_ranges WHERE name LIKE '%on\_%\_epoch\_end' ESCAPE '\')
--   OR EXISTS (SELECT 1 FROM ops WHERE name LIKE '%on\_%\_epoch\_end' ESCAPE '\')
-- cannot tell: no hook at the end of an epoch was recorded, as Lightning's profilers name them
-- threshold: seconds = 1 (guide 004)
-- advice: draw, log and save less often, or in another process; leave the callback out where nobody looks at what it makes
-- wrong: it validates, which is work that is wanted
WITH hooks AS (
	SELECT name, calls, total_ns, max_ns, 'between steps: other' AS time_of, rank_steps AS steps FROM between_ranges, run WHERE kind <> 'rest'
	UNION ALL
	SELECT name, calls, total_ns, max_ns, NULL, operator_sum_steps FROM ops, run WHERE kind IN ('annotation', 'range'))
SELECT name AS place, as_count(calls, 'call') || ' of ' || as_time(total_ns / calls) || ', the longest ' || as_time(max_ns)
         || ', ' || as_time(total_ns / steps) || ' for each step' AS evidence,
       total_ns / steps AS saving_ns, time_of, 0.8 AS confidence
FROM hooks
WHERE name LIKE '%on\_%\_epoch\_end' ESCAPE '\' AND max_ns > :seconds * 1e9
ORDER BY total_ns DESC LIMIT 20
