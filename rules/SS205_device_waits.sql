-- SPDX-License-Identifier: Apache-2.0
-- id: SS205
-- title: The device waits for the host
-- severity: problem
-- verdict: launch-bound
-- needs: step_breakdown.ratio
-- tells if: EXISTS (SELECT 1 FROM what_if) AND EXISTS (SELECT 1 FROM step_breakdown) OR (SELECT ratio < 0.5 FROM step_breakdown WHERE part = 'idle: nothing recorded')
--   OR (SELECT sum(ratio) > :share FROM step_breakdown WHERE part IN ('idle: launch', 'idle: host'))
-- cannot tell: for more than half of the time nothing was recorded of the threads that drive the device
-- threshold: share = 0.20 (of a step, ours; guide 000: a device busy for less than 70 % has a bottleneck in the CPU)
-- threshold: saves = 0.02 (of a step, ours: what the step would be shorter without it)
-- advice: larger batches; torch.compile or CUDA graphs; fewer small operators; no work of Python between launches
-- wrong: the profiler itself slowed the host down, as with stacks and shapes of many small operators
SELECT (SELECT part FROM step_breakdown WHERE part IN ('idle: launch', 'idle: host') ORDER BY ratio DESC LIMIT 1) AS place,
       'no device works for ' || as_share(i.ratio) || ' of ' || i.whole || ', ' || as_time(i.mean_ns) || ', while the host prepares and launches'
         || CASE WHEN c.ratio > 0.01 THEN '; up to ' || as_share(c.ratio) || ' of it behind waits for the device (tables sync_waits, copy_waits)' ELSE '' END
         AS evidence,
       i.mean_ns * (1 - c.ratio / i.ratio) AS saving_ns, 'device idle: launch + device idle: host' AS time_of, 0.7 AS confidence,
       NULL AS advice, NULL AS cut
FROM (SELECT sum(ratio) AS ratio, sum(mean_ns) AS mean_ns, whole FROM step_breakdown WHERE part IN ('idle: launch', 'idle: host')) i,
     (SELECT min((SELECT sum(ratio) FROM step_breakdown WHERE part IN ('idle: launch', 'idle: host')),
                 (coalesce((SELECT sum(idle_after_ns) FROM copy_waits WHERE waited_count > 0), 0)
                  + coalesce((SELECT sum(kept_idle_ns) FROM sync_waits), 0)) * 1.0
                 / (SELECT sum(total_ns) FROM step_breakdown)) AS ratio) c
WHERE i.ratio - c.ratio > :share AND NOT EXISTS (SELECT 1 FROM what_if)
UNION ALL
SELECT 'launches',
       coalesce((SELECT 'no device works for ' || as_share(sum(ratio)) || ' of ' || whole || ', ' || as_time(sum(mean_ns)) || ', while the host prepares and launches; '
                 FROM step_breakdown WHERE part IN ('idle: launch', 'idle: host') HAVING sum(ratio) > 0), '')
         || 'as one graph a step takes ' || as_time(w.step_ns), NULL, NULL, NULL,
       'torch.compile(mode="reduce-overhead") or CUDA graphs; fewer small operators; larger batches', w.cut
FROM what_if w WHERE w.cut = 'launch' AND w.saving_ratio > :saves
UNION ALL
SELECT 'long stretches of the host', 'a step without it takes ' || as_time(w.step_ns), NULL, NULL, NULL,
       'look at what the host does there: record with --with lines, or put record_function() around parts of the loop', w.cut
FROM what_if w WHERE w.cut = 'host' AND w.place IS NULL AND w.saving_ratio > :saves AND EXISTS (SELECT 1 FROM step_breakdown) -- else SS412
