-- SPDX-License-Identifier: Apache-2.0
-- id: SS212
-- title: Devices, their memory and the processors all have room
-- severity: hint
-- needs: telemetry.p95, counters.p95
-- tells if: EXISTS (SELECT 1 FROM counters WHERE name = 'host.cpu.busy_ratio')
--   AND EXISTS (SELECT 1 FROM telemetry u JOIN telemetry o ON o."of" = u."of" AND o.quantity IN ('memory.free', 'memory.total')
--               JOIN telemetry b ON b."of" = u."of" AND b.quantity = 'utilization.gpu' AND b.mean IS NOT NULL
--               WHERE u.quantity = 'memory.used' AND u.p95 IS NOT NULL AND o.max IS NOT NULL)
-- cannot tell: that takes nvidia-smi's utilization.gpu and memory.used with memory.free or memory.total, and the use of the processors
-- threshold: share = 0.70 (of each, at their 95 % quantiles: SageMaker's debugger)
-- advice: a larger batch
-- wrong: the batch is what the training needs; or something else holds all of them up, which then is found as well
SELECT "of" AS place,
       'in 95 % of the values kernels run for at most ' || as_share(busy / 100) || ' of the time, ' || as_share(used / total)
         || ' of the device''s memory is in use, and ' || as_share(cpu) || ' of the processors' AS evidence,
       NULL AS saving_ns, 0.5 AS confidence
FROM (SELECT u."of", u.p95 AS used, b.p95 AS busy, (SELECT max(p95) FROM counters WHERE name = 'host.cpu.busy_ratio') AS cpu,
             coalesce((SELECT max FROM telemetry t WHERE t."of" = u."of" AND t.quantity = 'memory.total'),
                      u.max + (SELECT min FROM telemetry f WHERE f."of" = u."of" AND f.quantity = 'memory.free')) AS total
      FROM telemetry u JOIN telemetry b ON b."of" = u."of" AND b.quantity = 'utilization.gpu' AND b.max > 0
      WHERE u.quantity = 'memory.used')
WHERE used < :share * total AND busy < 100 * :share AND cpu < :share
