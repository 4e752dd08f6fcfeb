-- SPDX-License-Identifier: Apache-2.0
-- id: SS703
-- title: Gradients grow
-- severity: problem
-- needs: metrics
-- tells if: (SELECT max(count) >= 10 FROM metrics WHERE name LIKE '%grad%norm%')
-- cannot tell: no metric with grad and norm in its name has 10 values
-- threshold: factor = 2 (last third over first third: guide 001's engine)
-- advice: clip_grad_norm_, a smaller learning rate
-- wrong: the first third is a warm-up of the learning rate
SELECT name || ' of ' || process AS place,
       printf('%.4g', first_third_mean) || ' on the mean of the first third, ' || printf('%.4g', last_third_mean) || ' of the last' AS evidence,
       NULL AS saving_ns, 0.8 AS confidence
FROM metrics
WHERE name LIKE '%grad%norm%' AND count >= 10 AND last_third_mean > :factor * first_third_mean
