-- SPDX-License-Identifier: Apache-2.0
-- id: SS301
-- title: Copies and conversions of tensors take time
-- severity: hint
-- needs: ops.step_self_ratio|what_if.saving_ratio
-- tells if: EXISTS (SELECT 1 FROM what_if WHERE cut = 'device') OR EXISTS (SELECT 1 FROM ops WHERE name LIKE 'aten::%')
-- cannot tell: no operators of PyTorch were recorded
-- threshold: share = 0.10 (of steps without a device, ours; guide 001 warns at 0.30 of the time of its ten largest operators)
-- threshold: saves = 0.02 (of a step, ours: what the step would be shorter without it)
-- advice: keep tensors in one type and on one device; contiguous() once instead of in each step; no cpu() in the loop
-- wrong: the copies are the work, as in gathering a batch
SELECT group_concat(name, ', ') AS place, as_share(sum(step_self_ratio)) || ' of steps, ' || as_count(sum(calls), 'call') AS evidence,
       sum(step_self_ratio) * (SELECT mean_ns FROM step_time WHERE process = 'all') AS saving_ns, 0.5 AS confidence, NULL AS cut
FROM ops
WHERE NOT EXISTS (SELECT 1 FROM what_if) AND name IN ('aten::copy_', 'aten::_to_copy', 'aten::to', 'aten::contiguous', 'aten::clone')
HAVING sum(step_self_ratio) > :share
UNION ALL
SELECT CASE WHEN EXISTS (SELECT 1 FROM step_breakdown) THEN 'conversions and copies on the device'
            ELSE (SELECT group_concat(name, ', ') FROM ops WHERE name IN ('aten::copy_', 'aten::_to_copy', 'aten::to', 'aten::contiguous', 'aten::clone')) END,
       'a step without it takes ' || as_time(w.step_ns), NULL, NULL, w.cut
FROM what_if w WHERE w.cut = 'device' AND w.saving_ratio > CASE WHEN EXISTS (SELECT 1 FROM step_breakdown) THEN :saves ELSE :share END
