-- SPDX-License-Identifier: Apache-2.0
-- id: SS102
-- title: The DataLoader makes batches in the process that trains
-- severity: hint
-- needs: ops
-- tells if: EXISTS (SELECT 1 FROM ops WHERE name LIKE 'enumerate(DataLoader)#%')
-- cannot tell: no DataLoader of PyTorch was recorded
-- threshold: share = 0.01 (of steps, ours: a loader that hands out finished tensors needs no workers. TorchTidy's pattern of
--   synchronous loaders, guide 004's comparison of num_workers 0 with 4)
-- advice: num_workers of about 4 per device, persistent_workers=True, pin_memory=True
-- wrong: the dataset is small and in memory, or the workers would need the processors that train
WITH whole AS (SELECT coalesce((SELECT mean_ns * detail_steps FROM step_time, run WHERE process = 'all'), (SELECT sum(self_ns) FROM ops)) AS ns,
                      coalesce((SELECT mean_ns * operator_sum_steps FROM step_time, run WHERE process = 'all' AND operator_sum_steps > 0),
                               (SELECT sum(self_ns) FROM ops)) AS sum_ns),
     here AS (SELECT loader || ' in ' || process AS place, batches, dataset_ns + collate_ns AS work_ns, -- what workers would take over
                     coalesce((SELECT sum(s.duration_ns) FROM steps s WHERE s.process = d.process AND s.is_complete AND s.has_detail), whole.ns) AS steps_ns
              FROM data_loader d, whole WHERE part = 'loop' AND dataset_ns IS NOT NULL AND idle_ratio IS NULL)
SELECT place, as_time(work_ns / batches) || ' for a batch in the dataset''s code and in collating, mean of ' || batches
         || ', during which nothing else is prepared' AS evidence,
       NULL AS saving_ns, 0.8 AS confidence
FROM here WHERE work_ns > :share * steps_ns
UNION ALL -- traces do not tell what the time is spent on
SELECT name, as_time(total_ns / calls) || ' for a batch, mean of ' || calls || ', during which nothing else is prepared', NULL, 0.8
FROM ops, whole
WHERE name LIKE 'enumerate(DataLoader)#\_SingleProcess%' ESCAPE '\' AND calls > 0 AND total_ns > :share * whole.sum_ns
  AND NOT EXISTS (SELECT 1 FROM data_loader WHERE part = 'loop')
