-- SPDX-License-Identifier: Apache-2.0
-- id: SS605
-- title: Many batch norms wait for all ranks
-- severity: hint
-- needs: ops
-- tells if: EXISTS (SELECT 1 FROM ops WHERE name LIKE 'aten::%')
-- cannot tell: no operators of PyTorch were recorded
-- threshold: calls = 20 (in a step: msprof-analyze's)
-- advice: SyncBatchNorm only where the batch of a rank is small, or GroupNorm
-- wrong: the batches of a rank are too small for statistics of their own
SELECT name AS place, printf('%.0f', calls * 1.0 / t.steps) || ' in each step, each of which exchanges its sums' AS evidence,
       NULL AS saving_ns, 0.6 AS confidence
FROM ops, (SELECT coalesce(nullif(operator_sum_steps, 0), 1) AS steps FROM run) t
WHERE name = 'SyncBatchNorm' AND calls > :calls * t.steps
