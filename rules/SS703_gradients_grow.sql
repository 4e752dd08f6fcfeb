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
WITH norms AS (SELECT process, name, value, row_number() OVER (PARTITION BY process, name ORDER BY time_ns) AS number,
                      count(*) OVER (PARTITION BY process, name) AS count
               FROM series_values WHERE is_metric AND name LIKE '%grad%norm%'),
     thirds AS (SELECT process, name, avg(CASE WHEN number <= count / 3 THEN value END) AS early,
                       avg(CASE WHEN number > count - count / 3 THEN value END) AS late
                FROM norms WHERE count >= 10 GROUP BY process, name)
SELECT name || ' of ' || process AS place,
       printf('%.4g', early) || ' on the mean of the first third, ' || printf('%.4g', late) || ' of the last' AS evidence,
       NULL AS saving_ns, 0.8 AS confidence
FROM thirds WHERE late > :factor * early
