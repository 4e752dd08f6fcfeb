-- SPDX-License-Identifier: Apache-2.0
-- id: SS405
-- title: A loop over an index takes tensors apart
-- severity: hint
-- needs: operator_patterns
-- tells if: (SELECT count IS NOT NULL FROM operator_patterns WHERE pattern = 'loop over an index')
-- cannot tell: no operators of PyTorch were recorded
-- threshold: share = 0.01 (of steps, ours; TorchTidy names every one)
-- advice: one operator on the whole tensor: slices, gather, vmap; unbind() where a loop must be
-- wrong: each turn depends on the one before
SELECT coalesce(line, module || ', ' || operation, operation) AS place,
       as_count(count, 'time') || ', ' || as_time(total_ns) || coalesce(', ' || as_share(ratio) || ' of steps', '') AS evidence,
       ratio * (SELECT mean_ns FROM step_time WHERE process = 'all') AS saving_ns, 0.7 AS confidence
FROM operator_patterns WHERE pattern = 'loop over an index' AND ratio > :share
