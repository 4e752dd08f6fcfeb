-- SPDX-License-Identifier: Apache-2.0
-- id: SS502
-- title: Memory of the device is taken from the driver in the loop
-- severity: problem
-- needs: runtime_calls|what_if.saving_ratio, step_breakdown
-- threshold: share = 0.01 (of steps, ours; guide 000: frequent cudaMalloc and cudaFree inside steps)
-- threshold: saves = 0.02 (of a step, ours: what the step would be shorter without it)
-- advice: no empty_cache() in the loop; sizes that do not change; PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True
-- wrong: the recording begins with the program: the first steps fill the allocator's cache
SELECT group_concat(call, ', ') AS place,
       as_count(sum(calls), 'call') || ', ' || as_time(sum(total_ns)) || ', ' || as_share(min(1, sum(total_ns) * 1.0 / s.all_ns)) || ' of ' || s.whole
         AS evidence,
       min(sum(total_ns) * 1.0 / s.all_ns * s.step_ns, s.idle_ns) AS saving_ns, 'device idle' AS time_of, -- calls of several threads; a device that works goes on
       CASE WHEN (SELECT count > 2 FROM step_time WHERE process = 'all') THEN 0.7 ELSE 0.4 END AS confidence,
       CASE WHEN EXISTS (SELECT 1 FROM what_if) THEN 'alloc' END AS cut
FROM (SELECT * FROM runtime_calls
      WHERE call IN ('cudaMalloc', 'cudaFree', 'hipMalloc', 'hipFree', 'cuMemCreate', 'cuMemMap', 'cuMemUnmap', 'cuMemRelease',
                     'cuMemSetAccess', 'cudaHostAlloc', 'cudaFreeHost', 'hipHostMalloc', 'hipHostFree')),
     (SELECT sum(total_ns) AS all_ns, sum(mean_ns) AS step_ns, sum(mean_ns) FILTER (WHERE part LIKE 'idle: %') AS idle_ns, whole FROM step_breakdown) s
HAVING CASE WHEN EXISTS (SELECT 1 FROM what_if) THEN EXISTS (SELECT 1 FROM what_if w WHERE w.cut = 'alloc' AND w.saving_ratio > :saves)
       ELSE sum(total_ns) > :share * s.all_ns END
