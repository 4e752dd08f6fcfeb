-- SPDX-License-Identifier: Apache-2.0
-- id: SS604
-- title: Gradients of devices travel without NCCL
-- severity: problem
-- needs: ops
-- tells if: EXISTS (SELECT 1 FROM facts WHERE key = 'distributed.backend')
-- cannot tell: the trace does not say how processes communicate
-- threshold: devices = 0 (the TensorBoard plugin's: any device)
-- advice: init_process_group("nccl")
-- wrong: the devices are not NVIDIA's, or a second group with NCCL does the work
SELECT 'backend ' || group_concat(DISTINCT value) AS place,
       (SELECT count(*) FROM device_busy) || ' devices with DistributedDataParallel' AS evidence, NULL AS saving_ns, 0.7 AS confidence
FROM facts WHERE key = 'distributed.backend'
HAVING sum(value LIKE '%nccl%') = 0 AND (SELECT count(*) FROM device_busy) > :devices
  AND EXISTS (SELECT 1 FROM ops WHERE name LIKE 'DistributedDataParallel.forward%')
