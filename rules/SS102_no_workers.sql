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
SELECT name AS place,
       as_time(total_ns / calls) || ' for a batch, mean of ' || calls || ', during which nothing else is prepared' AS evidence,
       NULL AS saving_ns, 0.8 AS confidence
FROM ops
WHERE name LIKE 'enumerate(DataLoader)#\_SingleProcess%' ESCAPE '\' AND calls > 0
  AND total_ns > :share * coalesce((SELECT mean_ns * count FROM step_time WHERE process = 'all'),
                                   (SELECT sum(self_ns) FROM ops))
