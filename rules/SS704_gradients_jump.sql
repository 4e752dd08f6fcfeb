-- SPDX-License-Identifier: Apache-2.0
-- id: SS704
-- title: Gradients vary much
-- severity: hint
-- needs: metrics
-- tells if: (SELECT max(count) > 20 FROM metrics WHERE name LIKE '%grad%norm%')
-- cannot tell: no metric with grad and norm in its name has more than 20 values
-- threshold: part = 0.5 (standard deviation over mean: guide 001's engine)
-- advice: clip_grad_norm_, a larger batch, a smaller learning rate or a longer warm-up of it; look at the samples of the largest ones
-- wrong: it falls as it should, so that the first steps are what is far from the mean
SELECT name || ' of ' || process AS place,
       'standard deviation ' || printf('%.4g', deviation) || ' about a mean of ' || printf('%.4g', mean) || ', from ' || printf('%.4g', min) || ' to '
         || printf('%.4g', max) AS evidence,
       NULL AS saving_ns, 0.6 AS confidence
FROM metrics
WHERE name LIKE '%grad%norm%' AND count > 20 AND deviation > :part * mean
