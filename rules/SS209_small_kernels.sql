-- SPDX-License-Identifier: Apache-2.0
-- id: SS209
-- title: Kernels are so short that the device waits for their launches
-- severity: hint
-- needs: launches.short_ratio, step_breakdown.ratio
-- threshold: part = 0.3 (of the kernels: ours; HTA counts kernels shorter than their launch)
-- threshold: short_us = 100 (guide 000 calls many such kernels bound by launches: by the mean of each kernel)
-- threshold: many = 0.9 (of the kernels, ours: guide 000 says "many")
-- threshold: idle = 0.05 (of a step, ours: without waiting for launches small kernels cost nothing)
-- threshold: kernels = 20 (ours: fewer say nothing)
-- advice: torch.compile or CUDA graphs; fused and foreach optimizers; larger batches
-- wrong: the profiler makes launches longer than they are without it
WITH of_kernels AS (SELECT sum(calls) FILTER (WHERE mean_ns < :short_us * 1000) AS short, sum(calls) AS calls FROM kernels)
SELECT (SELECT call FROM launches ORDER BY short_count DESC LIMIT 1) AS place,
       sum(short_count) || ' of ' || sum(work_count) || ' kernels are shorter than the call that launches them'
         || CASE WHEN sum(work_count) > sum(calls) THEN ', or than their part of a call for several' ELSE '' END
         || coalesce('; ' || (SELECT short || ' of ' || calls FROM of_kernels) || ' take less than ' || CAST(:short_us AS INTEGER) || ' us', '')
         || '; the device is idle within launches for ' || (SELECT as_share(ratio) || ' of ' || whole FROM step_breakdown WHERE part = 'idle: launch') AS evidence,
       NULL AS saving_ns, 0.7 AS confidence
FROM launches WHERE short_ratio IS NOT NULL
HAVING (sum(short_count) > :part * sum(work_count) -- a graph launches many at once
        OR (sum(work_count) < 2 * sum(calls) AND (SELECT short > :many * calls FROM of_kernels))) AND sum(work_count) >= :kernels
  AND (SELECT ratio FROM step_breakdown WHERE part = 'idle: launch') > :idle
