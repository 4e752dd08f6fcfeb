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
-- threshold: part = 0.5 (of what only some steps do, ours: a callback that takes as much of it is that)
-- advice: draw, log and save less often, or in another process; leave the callback out where nobody looks at what it makes
-- wrong: it validates, which is work that is wanted
WITH hooks AS (
	SELECT name, calls, total_ns, max_ns, 'between steps: other' AS time_of, rank_steps AS steps FROM between_ranges, run WHERE kind <> 'rest'
	UNION ALL
	SELECT name, calls, total_ns, max_ns, NULL, operator_sum_steps FROM ops, run WHERE kind IN ('annotation', 'range')),
-- what only some steps do, or one
some AS (SELECT cut, place, saving_ns FROM what_if WHERE cut = 'periodic' OR cut = 'host' AND place = 'once')
SELECT hooks.name AS place, as_count(calls, 'call') || ' of ' || as_time(total_ns / calls) || ', the longest ' || as_time(max_ns)
         || ', ' || as_time(total_ns / steps) || ' for each step' AS evidence,
       total_ns / steps AS saving_ns, time_of, 0.8 AS confidence, some.cut AS cut, some.place AS cut_place
FROM hooks LEFT JOIN some ON hooks.total_ns > :part * some.saving_ns * hooks.steps
WHERE hooks.name LIKE '%on\_%\_epoch\_end' ESCAPE '\' AND max_ns > :seconds * 1e9
ORDER BY total_ns DESC LIMIT 20
