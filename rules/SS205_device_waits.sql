-- SPDX-License-Identifier: Apache-2.0
-- id: SS205
-- title: The device waits for the host
-- severity: problem
-- verdict: launch-bound
-- needs: step_breakdown.ratio
-- tells if: (SELECT ratio < 0.5 FROM step_breakdown WHERE part = 'idle: nothing recorded')
--   OR (SELECT sum(ratio) > :share FROM step_breakdown WHERE part IN ('idle: launch', 'idle: host'))
-- cannot tell: for more than half of the time nothing was recorded of the threads that drive the device
-- threshold: share = 0.20 (of a step, ours; guide 000: a device busy for less than 70 % has a bottleneck in the CPU)
-- advice: larger batches; torch.compile or CUDA graphs; fewer small operators; no work of Python between launches
-- wrong: the profiler itself slowed the host down, as with stacks and shapes of many small operators
SELECT (SELECT part FROM step_breakdown WHERE part IN ('idle: launch', 'idle: host') ORDER BY ratio DESC LIMIT 1) AS place,
       'no device works for ' || as_share(sum(ratio)) || ' of a step, ' || as_time(sum(mean_ns))
         || ', while the host prepares and launches' AS evidence,
       sum(mean_ns) AS saving_ns, 0.7 AS confidence
FROM step_breakdown WHERE part IN ('idle: launch', 'idle: host')
HAVING sum(ratio) > :share
