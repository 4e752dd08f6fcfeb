-- SPDX-License-Identifier: Apache-2.0
-- id: SS414
-- title: Operators outside of forward, backward and optimizer take time
-- severity: problem
-- verdict: host-bound
-- needs: ops.step_outside_ns, phases.ratio
-- tells if: EXISTS (SELECT 1 FROM phases WHERE name = 'forward') AND EXISTS (SELECT 1 FROM phases WHERE name = 'backward')
--   AND NOT EXISTS (SELECT 1 FROM kernels)
--   AND NOT EXISTS (SELECT 1 FROM facts WHERE key LIKE 'optimizer.%.parameter_devices' AND value NOT LIKE 'cpu')
-- cannot tell: forward and backward are not known, or a device computes, which runs its work later than the operators
-- threshold: share = 0.10 (of a step, ours)
-- threshold: saves = 0.05 (of a step, ours: what the step would be shorter without them)
-- threshold: part = 0.01 (of a step: smaller operators are not named, ours)
-- advice: do it less often, such as in each 100th step: histograms, norms and metrics need no value of every step; make random data in a loader
-- wrong: it belongs to the model, as a loss does that is computed by hand; stepscope.phase("forward") around it says so
WITH outside AS (
	SELECT name, calls, step_outside_ns AS ns, step_outside_ns * step_self_ratio / step_self_ns AS ratio
	FROM ops WHERE kind = 'op' AND step_outside_ns > 0
	  AND name NOT IN ('aten::item', 'aten::_local_scalar_dense', 'aten::copy_', 'aten::_to_copy')), -- SS201, SS301
named AS (SELECT group_concat(name || ' ' || as_share(ratio), ', ') AS names
          FROM (SELECT name, ratio FROM outside WHERE ratio > :part ORDER BY ratio DESC LIMIT 4))
SELECT (SELECT name FROM outside ORDER BY ns DESC LIMIT 1) AS place,
       as_share(sum(ratio)) || ' of a step is in operators outside all phases' || coalesce(': ' || names, '') AS evidence,
       sum(ratio) * t.mean_ns AS saving_ns, 'phase other' AS time_of, 0.7 AS confidence, NULL AS cut, NULL AS cut_place
FROM outside, named, step_time t WHERE t.process = 'all' AND NOT EXISTS (SELECT 1 FROM what_if)
GROUP BY names HAVING sum(ratio) > :share
UNION ALL
SELECT (SELECT name FROM outside ORDER BY ns DESC LIMIT 1),
       coalesce((SELECT names FROM named) || '; ', '') || 'without operators outside all phases a step takes ' || as_time(w.step_ns), NULL, NULL, NULL, w.cut, w.place
FROM what_if w WHERE w.cut = 'host' AND w.place = 'operators in no phase' AND w.saving_ratio > :saves
