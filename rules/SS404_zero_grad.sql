-- SPDX-License-Identifier: Apache-2.0
-- id: SS404
-- title: Gradients are filled with zeros instead of dropped
-- severity: hint
-- needs: operator_patterns
-- tells if: (SELECT count IS NOT NULL FROM operator_patterns WHERE pattern = 'gradients filled with zeros')
-- cannot tell: no zero_grad() of an optimizer was recorded
-- threshold: share = 0.01 (of steps, ours; TorchTidy names every one)
-- advice: optimizer.zero_grad(set_to_none=True), the default since PyTorch 2.0
-- wrong: something reads gradients between two steps
SELECT coalesce(line, module || ', ' || operation, operation) AS place,
       as_count(count, 'time') || ', ' || as_time(total_ns) || coalesce(', ' || as_share(ratio) || ' of steps', '') AS evidence,
       ratio * (SELECT mean_ns FROM step_time WHERE process = 'all') AS saving_ns, 0.7 AS confidence
FROM operator_patterns WHERE pattern = 'gradients filled with zeros' AND ratio > :share
