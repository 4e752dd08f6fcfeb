-- SPDX-License-Identifier: Apache-2.0
-- id: SS702
-- title: The loss goes up
-- severity: problem
-- needs: metrics
-- tells if: (SELECT max(count) > 20 FROM metrics WHERE name LIKE '%loss%')
-- cannot tell: no metric with loss in its name has more than 20 values
-- threshold: factor = 1.5 (last ten values over first ten: guide 001's engine)
-- threshold: values = 20 (guide 001's engine: more than that)
-- advice: a smaller learning rate, a longer warm-up, clipping of gradients; look at the batches where it turns
-- wrong: it is a reward, where more is better, or a loss that another one works against
SELECT name || ' of ' || process AS place,
       printf('%.4g', first_ten_mean) || ' on the mean of the first ten values, ' || printf('%.4g', last_ten_mean) || ' of the last ten' AS evidence,
       NULL AS saving_ns, 0.8 AS confidence
FROM metrics
WHERE name LIKE '%loss%' AND count > :values
  AND (first_ten_mean >= 0 AND last_ten_mean > :factor * first_ten_mean OR first_ten_mean < 0 AND last_ten_mean > first_ten_mean / :factor)
