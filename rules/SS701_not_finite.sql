-- SPDX-License-Identifier: Apache-2.0
-- id: SS701
-- title: A result is not a finite number
-- severity: problem
-- needs: metrics
-- threshold: allowed = 0 (guide 001's engine: none)
-- advice: look at the step before: learning rate, overflow of half precision, a bad batch; torch.autograd.set_detect_anomaly(True)
-- wrong: the program logs NaN for "not computed in this step"
SELECT name || ' of ' || process || coalesce(', step ' || first_nan_step, '') AS place,
       nan_count || ' of ' || count || ' values are NaN or infinite' AS evidence, NULL AS saving_ns, 0.9 AS confidence
FROM metrics WHERE nan_count > :allowed
