-- SPDX-License-Identifier: Apache-2.0
-- id: SS304
-- title: Kernels that only move memory take most of the device's time
-- severity: hint
-- verdict: memory-bound
-- needs: kernels.work, step_breakdown.ratio
-- threshold: share = 0.50 (of a step, ours; XProf calls use of memory above 0.70 and of matrix units below 0.50 memory-bound)
-- threshold: saved = 0.50 (of their time, ours: two operators joined move half of what they do one by one)
-- threshold: part = 0.5 (of the multiprocessors, as in SS303: what leaves more of them empty is not held up by the memory)
-- advice: torch.compile joins elementwise operators and norms; bfloat16 halves what is moved; fused optimizers
-- wrong: the kernels fit into the cache, or are short and the launches are what costs (SS209). Known from names, not from counters
SELECT (SELECT kernel FROM kernels WHERE work = 'memory' AND coalesce(sm_efficiency_ratio, 1) >= :part ORDER BY total_ns DESC LIMIT 1) AS place,
       'elementwise kernels, norms, reductions and copies by kernels: ' || as_share(m.part) || ' of the time of kernels, '
         || as_share(m.part * c.ratio) || ' of ' || c.whole AS evidence,
       m.part * c.ratio * :saved * (SELECT sum(mean_ns) FROM step_breakdown) AS saving_ns, 'device compute kernels' AS time_of, 0.6 AS confidence
FROM (SELECT sum(total_ns * (work = 'memory' AND coalesce(sm_efficiency_ratio, 1) >= :part)) * 1.0 / sum(total_ns) AS part
      FROM kernels WHERE class = 'compute') m,
     (SELECT ratio, whole FROM step_breakdown WHERE part = 'compute kernels') c
WHERE m.part * c.ratio > :share
