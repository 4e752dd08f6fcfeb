-- SPDX-License-Identifier: Apache-2.0
-- id: SS201
-- title: The loop reads values of tensors
-- severity: problem
-- verdict: sync-bound
-- needs: steps.has_detail
-- tells if: EXISTS (SELECT 1 FROM facts WHERE key = 'torch.version') AND EXISTS (SELECT 1 FROM steps WHERE has_detail)
--   OR (SELECT program NOT LIKE '%python%' FROM run)
--   OR EXISTS (SELECT 1 FROM ops WHERE name LIKE 'aten::%') AND NOT EXISTS (SELECT 1 FROM step_breakdown)
-- cannot tell: no operators of PyTorch were recorded, or a device's work, where SS207 looks for it
-- threshold: share = 0.02 (of a step, ours: item() costs nothing when nothing has to be waited for)
-- advice: keep sums on the device and read them every 50 steps; no item(), cpu() or "if tensor" in the loop
-- wrong: the value is needed in each step, as in a loop that stops on it
SELECT coalesce("where", 'record with --with lines to see the line') AS place,
       as_count(h.count, 'time') || ', ' || as_time(step_own_ns) || ', ' || as_share(step_ratio) || ' of steps' AS evidence,
       step_ratio * t.mean_ns AS saving_ns, 'waits reading' AS time_of, 0.7 AS confidence
FROM host_waits h JOIN step_time t ON t.process = 'all'
WHERE cause LIKE 'reading a value%' AND step_ratio > :share
