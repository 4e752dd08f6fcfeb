-- SPDX-License-Identifier: Apache-2.0
-- id: SS803
-- title: The kernel killed a program for memory
-- severity: problem
-- needs: counters
-- tells if: EXISTS (SELECT 1 FROM counters WHERE name LIKE '%memory_oom_kills' OR name LIKE '%memory.oom_kills')
-- cannot tell: the memory of the machine was not recorded
-- threshold: kills = 0 (ours)
-- advice: fewer or smaller workers and caches, a higher limit of the control group; cgroup.memory_limit_bytes says what it is
-- wrong: the program that was killed is another one of the machine or the group
SELECT name AS place,
       as_count(max - min, 'program') || ' killed '
         || CASE WHEN name LIKE '%cgroup%' THEN 'at the limit of the control group' ELSE 'on the machine' END
         || coalesce(', which is ' || (SELECT as_bytes(max(l.max)) FROM counters l WHERE l.name LIKE '%cgroup.memory_limit_bytes'
                                       AND counters.name LIKE '%cgroup%'), '') AS evidence,
       NULL AS saving_ns, CASE WHEN name LIKE '%cgroup%' THEN 0.9 ELSE 0.6 END AS confidence
FROM counters WHERE (name LIKE '%memory_oom_kills' OR name LIKE '%memory.oom_kills') AND max - min > :kills
  -- where all that the run started ended well, the machine killed somebody else's program
  AND (name LIKE '%cgroup%' OR EXISTS (SELECT 1 FROM processes WHERE signal = 'SIGKILL' OR exit_status > 0
                                                                   OR end = 'did not close its recording'))
