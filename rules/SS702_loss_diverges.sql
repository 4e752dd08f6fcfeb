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
WITH loss AS (SELECT process, name, value, row_number() OVER (PARTITION BY process, name ORDER BY time_ns) AS number,
                     count(*) OVER (PARTITION BY process, name) AS count
              FROM series_values WHERE is_metric AND name LIKE '%loss%'),
     ends AS (SELECT process, name, avg(CASE WHEN number <= 10 THEN value END) AS early,
                     avg(CASE WHEN number > count - 10 THEN value END) AS late
              FROM loss WHERE count > :values GROUP BY process, name)
SELECT name || ' of ' || process AS place,
       printf('%.4g', early) || ' on the mean of the first ten values, ' || printf('%.4g', late) || ' of the last ten' AS evidence,
       NULL AS saving_ns, 0.8 AS confidence
FROM ends WHERE (early >= 0 AND late > :factor * early) OR (early < 0 AND late > early / :factor)
