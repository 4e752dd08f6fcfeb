-- SPDX-License-Identifier: Apache-2.0
-- id: SS603
-- title: DataParallel drives several devices from one process
-- severity: problem
-- needs: ops
-- tells if: EXISTS (SELECT 1 FROM ops WHERE name LIKE 'aten::%')
-- cannot tell: no operators of PyTorch were recorded
-- threshold: devices = 1 (the TensorBoard plugin's: more than one)
-- advice: DistributedDataParallel with one process for each device
-- wrong: the wrapper is used with one device only in other runs
SELECT name AS place, as_count(calls, 'call') || ', ' || (SELECT count(*) FROM device_busy) || ' devices' AS evidence, NULL AS saving_ns,
       0.9 AS confidence
FROM ops WHERE name LIKE 'DataParallel.forward%' AND (SELECT count(*) FROM device_busy) > :devices
