-- SPDX-License-Identifier: Apache-2.0
-- id: SS804
-- title: The machine waits for storage
-- severity: hint
-- needs: counters
-- tells if: EXISTS (SELECT 1 FROM counters WHERE name = 'host.cpu.iowait_ratio')
-- cannot tell: the processors of the machine were not recorded
-- threshold: share = 0.20 (of the time of its processors, ours: SageMaker's debugger says 0.50 while a device is idle)
-- advice: data on a faster disk or in memory; larger files that are read in sequence; more workers
-- wrong: another program of the machine waits
SELECT name AS place, as_share(mean) || ' of the time on the mean, at most ' || as_share(max) AS evidence, NULL AS saving_ns,
       0.5 AS confidence
FROM counters WHERE name = 'host.cpu.iowait_ratio' AND mean > :share
