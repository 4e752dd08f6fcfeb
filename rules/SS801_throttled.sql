-- SPDX-License-Identifier: Apache-2.0
-- id: SS801
-- title: The container's share of processors is used up
-- severity: problem
-- needs: counters
-- tells if: EXISTS (SELECT 1 FROM counters WHERE name = 'host.cgroup.cpu_throttled_s_per_s')
-- cannot tell: the limits of the program's control group were not recorded
-- threshold: share = 0.05 (seconds held up in a second, ours)
-- advice: a higher limit; fewer threads (torch.set_num_threads, OMP_NUM_THREADS) and workers than the limit has processors
-- wrong: only other programs of the group were held up
SELECT name AS place, 'its threads were held up for ' || printf('%.2f', mean) || ' s of every second on the mean, at most '
         || printf('%.2f', max) AS evidence,
       NULL AS saving_ns, 0.8 AS confidence
FROM counters WHERE name = 'host.cgroup.cpu_throttled_s_per_s' AND mean > :share
