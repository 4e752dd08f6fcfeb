-- SPDX-License-Identifier: Apache-2.0
-- id: SS401
-- title: Compilation goes on in steps
-- severity: problem
-- verdict: host-bound
-- needs: steps.has_rare|what_if.saving_ratio
-- tells if: EXISTS (SELECT 1 FROM facts WHERE key = 'torch.version') AND (SELECT sum(has_rare) >= 20 OR (sum(has_rare) > 0 AND min(has_rare)) FROM steps)
--   OR (SELECT program NOT LIKE '%python%' FROM run)
-- cannot tell: known only of our own recordings of PyTorch in which 20 steps have it, or all
-- threshold: share = 0.05 (of steps, ours)
-- threshold: saves = 0.02 (of a step, ours: what the step would be shorter without it)
-- threshold: compilations = 3 (ours: a forward, a backward and an optimizer are compiled once)
-- advice: mark sizes that change with torch._dynamo.mark_dynamic, or pad batches to few sizes; TORCH_LOGS=recompiles says why
-- wrong: the recording begins with the program and is short: the first compilations are wanted
SELECT coalesce("where", 'record with --with lines to see the line') AS place,
       as_count(h.count, 'compilation') || ', the longest ' || as_time(h.max_ns) || '; ' || as_share(step_ratio) || ' of steps' AS evidence,
       step_ratio * t.mean_ns AS saving_ns, 'waits compilation' AS time_of, 0.6 AS confidence, NULL AS cut
FROM host_waits h JOIN step_time t ON t.process = 'all'
WHERE cause = 'compilation' AND step_ratio > :share AND h.count > :compilations AND NOT EXISTS (SELECT 1 FROM what_if)
UNION ALL
SELECT coalesce(h."where", 'record with --with lines to see the line'),
       as_count(h.count, 'compilation') || ', the longest ' || as_time(h.max_ns) || '; a step without them takes ' || as_time(w.step_ns), NULL, NULL, NULL, w.cut
FROM what_if w LEFT JOIN host_waits h ON h.cause = 'compilation' WHERE w.cut = 'compile' AND w.saving_ratio > :saves AND h.count > :compilations
