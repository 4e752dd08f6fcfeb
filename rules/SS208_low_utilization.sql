-- SPDX-License-Identifier: Apache-2.0
-- id: SS208
-- title: A device computes for less than half of the time
-- severity: hint
-- needs: device_busy.step_kernel_ratio
-- threshold: share = 0.5 (of the steps: the TensorBoard plugin's; guide 000 calls less than 0.7 a bottleneck of the CPU)
-- advice: first what else was found; then a larger batch
-- wrong: the recording holds start-up or an evaluation rather than steps of training
SELECT group_concat(device, ', ') AS place,
       'kernels run for ' || group_concat(as_share(step_kernel_ratio), ', ') || ' of the time' AS evidence,
       NULL AS saving_ns, 0.8 AS confidence
FROM device_busy WHERE step_kernel_ratio < :share
HAVING count(*) > 0
