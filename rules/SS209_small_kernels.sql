-- SPDX-License-Identifier: Apache-2.0
-- id: SS209
-- title: Kernels take less time than it takes to launch them
-- severity: hint
-- needs: launches.short_ratio, step_breakdown.ratio
-- threshold: part = 0.3 (of the kernels: ours; HTA counts kernels shorter than their launch)
-- threshold: idle = 0.05 (of a step, ours: without waiting for launches small kernels cost nothing)
-- threshold: kernels = 20 (ours: fewer say nothing)
-- advice: torch.compile or CUDA graphs; fused and foreach optimizers; larger batches
-- wrong: the profiler makes launches longer than they are without it
SELECT (SELECT call FROM launches ORDER BY short_count DESC LIMIT 1) AS place,
       sum(short_count) || ' of ' || sum(work_count) || ' kernels are shorter than the call that launches them'
         || CASE WHEN sum(work_count) > sum(calls) THEN ', or than their part of a call for several' ELSE '' END
         || '; the device is idle within launches for ' || (SELECT as_share(ratio) || ' of ' || whole FROM step_breakdown WHERE part = 'idle: launch') AS evidence,
       NULL AS saving_ns, 0.7 AS confidence
FROM launches WHERE short_ratio IS NOT NULL
HAVING sum(short_count) > :part * sum(work_count) AND sum(work_count) >= :kernels
  AND (SELECT ratio FROM step_breakdown WHERE part = 'idle: launch') > :idle
