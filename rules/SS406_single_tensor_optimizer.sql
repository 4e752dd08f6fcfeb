-- SPDX-License-Identifier: Apache-2.0
-- id: SS406
-- title: The optimizer works on one tensor at a time
-- severity: hint
-- needs: operator_patterns|what_if.saving_ratio
-- tells if: EXISTS (SELECT 1 FROM what_if WHERE cut = 'optimizer' AND place IS NULL) OR (SELECT count IS NOT NULL FROM operator_patterns WHERE pattern = 'optimizer tensor by tensor')
--   AND EXISTS (SELECT 1 FROM step_breakdown)
-- cannot tell: no step of an optimizer was recorded, or its options are unknown
-- threshold: share = 0.02 (of steps, ours; TorchTidy names every one)
-- threshold: saves = 0.02 (of a step, ours: what the step would be shorter without it)
-- advice: foreach=True or, where it exists, fused=True
-- wrong: memory is short: lists of tensors need some more of it
SELECT coalesce(line, module || ', ' || operation, operation) AS place,
       as_count(count, 'time') || ', ' || as_time(total_ns) || coalesce(', ' || as_share(ratio) || ' of steps', '') AS evidence,
       ratio * (SELECT mean_ns FROM step_time WHERE process = 'all') AS saving_ns, 'phase optimizer' AS time_of, 0.7 AS confidence, NULL AS cut
FROM operator_patterns WHERE pattern = 'optimizer tensor by tensor' AND ratio > :share AND NOT EXISTS (SELECT 1 FROM what_if)
UNION ALL
SELECT coalesce((SELECT coalesce(line, module || ', ' || operation, operation) FROM operator_patterns WHERE pattern = 'optimizer tensor by tensor'), 'optimizer'),
       coalesce((SELECT as_count(count, 'time') || ', ' || as_time(total_ns) || coalesce(', ' || as_share(ratio) || ' of steps', '') || '; '
                 FROM operator_patterns WHERE pattern = 'optimizer tensor by tensor'), '')
         || 'with one fused kernel a step takes ' || as_time(w.step_ns), NULL, NULL, NULL, w.cut
FROM what_if w WHERE w.cut = 'optimizer' AND w.place IS NULL AND w.saving_ratio > :saves
