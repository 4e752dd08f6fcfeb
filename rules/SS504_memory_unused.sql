-- SPDX-License-Identifier: Apache-2.0
-- id: SS504
-- title: The device has memory and time to spare
-- severity: hint
-- needs: memory_totals.used_ratio, device_busy.step_kernel_ratio
-- threshold: share = 0.50 (of the device's memory: guide 000)
-- threshold: busy = 0.70 (of the steps: guide 000)
-- advice: a larger batch
-- wrong: the batch is what the training needs, or other programs use the device
SELECT m.process || ', ' || m.device AS place,
       'PyTorch has taken ' || as_bytes(m.reserved_peak_bytes) || ' at most, ' || as_share(m.used_ratio) || ' of '
         || as_bytes(m.capacity_bytes) || ', and kernels run for ' || as_share(b.step_kernel_ratio) || ' of the steps' AS evidence,
       NULL AS saving_ns, 0.6 AS confidence
FROM memory_totals m JOIN device_busy b ON b.device = m.device
WHERE m.used_ratio < :share AND b.step_kernel_ratio < :busy
