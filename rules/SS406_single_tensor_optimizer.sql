-- SPDX-License-Identifier: Apache-2.0
-- id: SS406
-- title: The optimizer works on one tensor at a time
-- severity: hint
-- needs: operator_patterns
-- tells if: (SELECT count IS NOT NULL FROM operator_patterns WHERE pattern = 'optimizer tensor by tensor')
--   AND EXISTS (SELECT 1 FROM step_breakdown)
-- cannot tell: no step of an optimizer was recorded, or no device, without which it makes no difference
-- threshold: share = 0.02 (of steps, ours; TorchTidy names every one)
-- advice: foreach=True or, where it exists, fused=True
-- wrong: memory is short: lists of tensors need some more of it
SELECT coalesce(line, module || ', ' || operation, operation) AS place,
       as_count(count, 'time') || ', ' || as_time(total_ns) || coalesce(', ' || as_share(ratio) || ' of steps', '') AS evidence,
       ratio * (SELECT mean_ns FROM step_time WHERE process = 'all') AS saving_ns, 'phase optimizer' AS time_of, 0.7 AS confidence
FROM operator_patterns WHERE pattern = 'optimizer tensor by tensor' AND ratio > :share
