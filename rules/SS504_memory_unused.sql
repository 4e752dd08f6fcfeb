-- SPDX-License-Identifier: Apache-2.0
-- id: SS504
-- title: The device has memory and time to spare
-- severity: hint
-- needs: memory_totals.used_ratio|telemetry, device_busy.step_kernel_ratio|telemetry
-- tells if: EXISTS (SELECT 1 FROM memory_totals m JOIN device_busy b ON b.device IN (m.device, m.process || ', ' || m.device)
--                   WHERE m.used_ratio IS NOT NULL AND b.step_kernel_ratio IS NOT NULL)
--   OR EXISTS (SELECT 1 FROM telemetry u JOIN telemetry o ON o."of" = u."of" AND o.quantity IN ('memory.free', 'memory.total')
--              JOIN telemetry b ON b."of" = u."of" AND b.quantity = 'utilization.gpu' AND b.mean IS NOT NULL
--              WHERE u.quantity = 'memory.used' AND u.max IS NOT NULL AND o.max IS NOT NULL)
-- cannot tell: what nvidia-smi says here is not utilization.gpu and memory.used with memory.free or memory.total
-- threshold: share = 0.50 (of the device's memory: guide 000)
-- threshold: busy = 0.70 (of the steps: guide 000)
-- advice: a larger batch
-- wrong: the batch is what the training needs, or other programs use the device
SELECT m.process || ', ' || m.device AS place,
       'PyTorch has taken ' || as_bytes(m.reserved_peak_bytes) || ' at most, ' || as_share(m.used_ratio) || ' of '
         || as_bytes(m.capacity_bytes) || ', and kernels run for ' || as_share(b.step_kernel_ratio) || ' of the steps' AS evidence,
       NULL AS saving_ns, 0.6 AS confidence
FROM memory_totals m JOIN device_busy b ON b.device IN (m.device, m.process || ', ' || m.device)
WHERE m.used_ratio < :share AND b.step_kernel_ratio < :busy
UNION ALL
-- A device that did nothing at all is another program's, or nobody's.
SELECT "of", 'nvidia-smi saw ' || as_share(used / total) || ' of its memory in use at most, and kernels run for ' || as_share(busy / 100)
         || ' of the time', NULL, 0.5
FROM (SELECT u."of", u.max AS used, b.mean AS busy,
             coalesce((SELECT max FROM telemetry t WHERE t."of" = u."of" AND t.quantity = 'memory.total'),
                      u.max + (SELECT min FROM telemetry f WHERE f."of" = u."of" AND f.quantity = 'memory.free')) AS total
      FROM telemetry u JOIN telemetry b ON b."of" = u."of" AND b.quantity = 'utilization.gpu' AND b.max > 0
      WHERE u.quantity = 'memory.used')
WHERE used < :share * total AND busy < 100 * :busy
  AND NOT EXISTS (SELECT 1 FROM memory_totals WHERE used_ratio IS NOT NULL)
