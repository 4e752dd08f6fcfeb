-- SPDX-License-Identifier: Apache-2.0
-- id: SS206
-- title: The device waits while the host is in calls of the driver
-- severity: problem
-- verdict: host-bound
-- needs: step_breakdown.ratio, runtime_calls
-- threshold: share = 0.05 (of a step, ours: these calls launch nothing and wait for nothing)
-- advice: keep memory instead of giving it back (no empty_cache() in the loop); pin buffers once; leave out the first steps, which
--   load modules and choose algorithms
-- wrong: the recording begins with the program: the first calls load the driver's modules
SELECT (SELECT call FROM runtime_calls WHERE NOT is_synchronizing ORDER BY total_ns DESC LIMIT 1) AS place,
       'no device works for ' || as_share(ratio) || ' of ' || whole || ', ' || as_time(mean_ns)
         || ', while a thread is in a call that launches nothing; the longest: '
         || (SELECT group_concat(call || ' ' || as_time(total_ns) || ' in ' || calls, ', ')
             FROM (SELECT * FROM runtime_calls WHERE NOT is_synchronizing ORDER BY total_ns DESC LIMIT 3)) AS evidence,
       mean_ns AS saving_ns, 'device idle: runtime calls' AS time_of, 0.7 AS confidence
FROM step_breakdown WHERE part = 'idle: runtime calls' AND ratio > :share
