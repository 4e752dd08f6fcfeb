-- SPDX-License-Identifier: Apache-2.0
-- id: SS303
-- title: Kernels leave most of the device empty
-- severity: problem
-- needs: kernels.sm_efficiency_ratio, step_breakdown.ratio
-- threshold: part = 0.5 (of the multiprocessors that have a block while a kernel computes: guide 000 calls fewer than 0.5 blocks for
--   each poor)
-- threshold: busy = 0.5 (of the steps with such kernels, ours: less is a matter of launches or communication, not of kernels)
-- advice: larger batches or sequences; fewer, larger operators; torch.compile; work that is independent on a second stream
-- wrong: the long kernels run at the same time on several streams, or are persistent with one block for each multiprocessor
SELECT (SELECT kernel FROM kernels WHERE class = 'compute' AND sm_efficiency_ratio < 1
        ORDER BY (1 - sm_efficiency_ratio) * total_ns DESC LIMIT 1) AS place,
       'kernels that compute run for ' || (SELECT as_share(max(ratio)) FROM step_breakdown WHERE part = 'compute kernels')
         || ' of the steps, but use ' || as_share(sum(sm_efficiency_ratio * total_ns) / sum(total_ns))
         || ' of the multiprocessors'
         || coalesce('; nvidia-smi''s ' || (SELECT as_share(max(mean) / 100) FROM telemetry WHERE quantity IN ('utilization.gpu', 'sm') AND unit = '%')
                     || ' only says that some kernel runs', '') AS evidence,
       min(sum((1 - sm_efficiency_ratio) * total_ns) / (SELECT sum(total_ns) FROM step_breakdown)
             * (SELECT sum(mean_ns) FROM step_breakdown),
           (SELECT mean_ns FROM step_breakdown WHERE part = 'compute kernels')) AS saving_ns, 'device compute kernels' AS time_of, -- kernels of several streams run side by side
       0.7 AS confidence
FROM kernels WHERE class = 'compute' AND sm_efficiency_ratio IS NOT NULL
HAVING sum(sm_efficiency_ratio * total_ns) < :part * sum(total_ns)
  AND (SELECT max(ratio) FROM step_breakdown WHERE part = 'compute kernels') > :busy
