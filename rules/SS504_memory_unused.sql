-- SPDX-License-Identifier: Apache-2.0
-- id: SS504
-- title: The device has memory and time to spare
-- severity: hint
-- needs: memory.peak_bytes, device_busy.step_kernel_ratio
-- tells if: EXISTS (SELECT 1 FROM facts WHERE key LIKE 'device.%.totalGlobalMem')
--   AND EXISTS (SELECT 1 FROM memory WHERE device LIKE 'device %')
-- cannot tell: how much memory the device has, or what was allocated there, was not recorded
-- threshold: share = 0.50 (of the device's memory: guide 000)
-- threshold: busy = 0.70 (of the steps: guide 000)
-- advice: a larger batch
-- wrong: the batch is what the training needs, or other programs use the device
SELECT m.process || ', ' || m.device AS place,
       as_bytes(m.peak_bytes) || ' at the peak, ' || as_share(m.peak_bytes / CAST(f.value AS REAL)) || ' of '
         || as_bytes(CAST(f.value AS INTEGER)) || ', and kernels run for ' || as_share(b.step_kernel_ratio) || ' of the steps' AS evidence,
       NULL AS saving_ns, 0.6 AS confidence
FROM memory m JOIN facts f ON f.key = replace(m.device, 'device ', 'device.') || '.totalGlobalMem'
     JOIN device_busy b ON b.device = m.device
WHERE m.category = 'all' AND m.peak_bytes < :share * CAST(f.value AS REAL) AND b.step_kernel_ratio < :busy
