-- SPDX-License-Identifier: Apache-2.0
-- id: SS402
-- title: The optimizer takes a large part of a step
-- severity: hint
-- needs: phases.ratio
-- tells if: EXISTS (SELECT 1 FROM phases WHERE name = 'optimizer')
-- cannot tell: the optimizer's step was not recorded
-- threshold: share = 0.15 (of a step: guide 000; guide 004 says 0.20)
-- advice: a larger batch or more accumulation per step; foreach=True or fused=True
-- wrong: the model is small, or the optimizer does more than usual, such as second-order methods
SELECT 'phase optimizer' AS place, as_share(ratio) || ' of a step, ' || as_time(mean_ns) AS evidence,
       mean_ns * (1 - :share / ratio) AS saving_ns, 'phase optimizer' AS time_of, 0.5 AS confidence
FROM phases WHERE name = 'optimizer' AND ratio > :share
