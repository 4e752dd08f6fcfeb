-- SPDX-License-Identifier: Apache-2.0
-- id: SS402
-- title: The optimizer takes a large part of a step
-- severity: hint
-- needs: phases.ratio|what_if.saving_ratio
-- tells if: EXISTS (SELECT 1 FROM what_if WHERE cut = 'optimizer') OR EXISTS (SELECT 1 FROM phases WHERE name = 'optimizer')
-- cannot tell: the optimizer's step was not recorded
-- threshold: share = 0.15 (of a step: guide 000; guide 004 says 0.20)
-- threshold: saves = 0.02 (of a step, ours: what the step would be shorter without it)
-- threshold: bound = 0.08 (of a step, ours: the step without the whole call of the optimizer)
-- advice: a larger batch or more accumulation per step; foreach=True or fused=True
-- wrong: the model is small, or the optimizer does more than usual, such as second-order methods
SELECT 'phase optimizer' AS place, as_share(ratio) || ' of a step, ' || as_time(mean_ns) AS evidence,
       mean_ns * (1 - :share / ratio) AS saving_ns, 'phase optimizer' AS time_of, 0.5 AS confidence,
       NULL AS cut, NULL AS cut_place
FROM phases WHERE name = 'optimizer' AND ratio > :share AND NOT EXISTS (SELECT 1 FROM what_if)
UNION ALL
SELECT 'optimizer', 'without the whole call a step takes ' || as_time(w.step_ns) || ': at most that much can be saved', NULL, NULL, 0.5, w.cut, w.place
FROM what_if w WHERE w.cut = 'optimizer' AND w.place = 'the whole call' AND w.saving_ratio > :bound
  AND NOT EXISTS (SELECT 1 FROM what_if o WHERE o.cut = 'optimizer' AND o.place IS NULL AND o.saving_ratio > :saves)
