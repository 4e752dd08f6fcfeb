-- SPDX-License-Identifier: Apache-2.0
-- id: SS401
-- title: Compilation goes on in steps
-- severity: problem
-- verdict: host-bound
-- needs: steps.has_rare
-- tells if: EXISTS (SELECT 1 FROM facts WHERE key = 'torch.version') AND (SELECT sum(has_rare) >= 20 OR (sum(has_rare) > 0 AND min(has_rare)) FROM steps)
--   OR (SELECT program NOT LIKE '%python%' FROM run)
-- cannot tell: known only of our own recordings of PyTorch in which 20 steps have it, or all
-- threshold: share = 0.05 (of steps, ours)
-- threshold: compilations = 3 (ours: a forward, a backward and an optimizer are compiled once)
-- advice: mark sizes that change with torch._dynamo.mark_dynamic, or pad batches to few sizes; TORCH_LOGS=recompiles says why
-- wrong: the recording begins with the program and is short: the first compilations are wanted
SELECT coalesce("where", 'record with --with lines to see the line') AS place,
       as_count(h.count, 'compilation') || ', the longest ' || as_time(h.max_ns) || '; ' || as_share(step_ratio) || ' of steps' AS evidence,
       step_ratio * t.mean_ns AS saving_ns, 'waits compilation' AS time_of, 0.6 AS confidence
FROM host_waits h JOIN step_time t ON t.process = 'all'
WHERE cause = 'compilation' AND step_ratio > :share AND h.count > :compilations
