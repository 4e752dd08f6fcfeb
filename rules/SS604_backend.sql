-- SPDX-License-Identifier: Apache-2.0
-- id: SS604
-- title: Gradients of devices travel over gloo, by way of the host
-- severity: problem
-- needs: ops
-- tells if: EXISTS (SELECT 1 FROM facts WHERE key = 'distributed.backend')
-- cannot tell: the trace does not say how processes communicate
-- threshold: devices = 0 (the TensorBoard plugin's: any device)
-- advice: init_process_group() with the backend of the devices: "nccl" for NVIDIA and AMD, "xccl" for Intel
-- wrong: another group does the work, with a backend that the trace does not name
SELECT 'backend ' || group_concat(DISTINCT value) AS place,
       (SELECT count(*) FROM device_busy) || ' devices with DistributedDataParallel' AS evidence, NULL AS saving_ns, 0.7 AS confidence
FROM facts WHERE key = 'distributed.backend'
HAVING sum(value NOT IN ('gloo', 'cpu:gloo') AND value NOT LIKE '%cuda:gloo%') = 0 AND (SELECT count(*) FROM device_busy) > :devices
  AND EXISTS (SELECT 1 FROM ops WHERE name LIKE 'DistributedDataParallel.forward%')
