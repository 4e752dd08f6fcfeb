-- SPDX-License-Identifier: Apache-2.0
-- id: SS210
-- title: The device's queue is empty when work comes
-- severity: hint
-- needs: launches.depth_mean
-- threshold: depth = 1 (work that waits: ours; at less the device waits for every launch)
-- threshold: launches = 20 (ours: fewer say nothing)
-- advice: nothing in the loop that waits for the device (SS201, SS207); less work of Python between launches
-- wrong: the work of a step is one large kernel
SELECT 'launches' AS place,
       'when work is launched ' || printf('%.2f', sum(depth_mean * calls) / sum(calls))
         || ' pieces of work wait before it on the mean of ' || sum(calls) || ' launches' AS evidence,
       NULL AS saving_ns, 0.7 AS confidence
FROM launches WHERE depth_mean IS NOT NULL
HAVING sum(depth_mean * calls) < :depth * sum(calls) AND sum(calls) >= :launches
