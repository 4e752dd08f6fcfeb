-- SPDX-License-Identifier: Apache-2.0
-- id: SS208
-- title: A device computes for less than half of the time
-- severity: hint
-- needs: device_busy.step_kernel_ratio|telemetry
-- tells if: EXISTS (SELECT 1 FROM device_busy WHERE step_kernel_ratio IS NOT NULL)
--   OR EXISTS (SELECT 1 FROM telemetry WHERE quantity IN ('utilization.gpu', 'sm') AND unit = '%' AND mean IS NOT NULL)
-- cannot tell: what nvidia-smi says here is not how busy a device was
-- threshold: share = 0.5 (of the steps: the TensorBoard plugin's; guide 000 calls less than 0.7 a bottleneck of the CPU)
-- advice: first what else was found; then a larger batch
-- wrong: the recording holds start-up or an evaluation rather than steps of training; the telemetry is of devices that others use
SELECT group_concat(device, ', ') AS place,
       'kernels run for ' || group_concat(as_share(step_kernel_ratio), ', ') || ' of the time' AS evidence,
       NULL AS saving_ns, 0.8 AS confidence,
       CASE WHEN max(process_devices) > 1 THEN 'devices of one process that take turns each wait for the others: split the batch into micro-batches '
         || 'and pipeline them, or give each device a process and a batch of its own (DistributedDataParallel, FSDP)' END AS advice
FROM device_busy WHERE step_kernel_ratio < :share
HAVING count(*) > 0
UNION ALL
-- A device that did nothing at all is another program's, or nobody's.
SELECT group_concat("of", ', '), 'nvidia-smi saw kernels run for ' || group_concat(as_share(mean / 100), ', ') || ' of the time', NULL, 0.5, NULL
FROM telemetry
WHERE quantity IN ('utilization.gpu', 'sm') AND unit = '%' AND max > 0 AND mean < 100 * :share
  AND NOT EXISTS (SELECT 1 FROM device_busy WHERE step_kernel_ratio IS NOT NULL)
HAVING count(*) > 0
