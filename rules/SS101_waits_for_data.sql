-- SPDX-License-Identifier: Apache-2.0
-- id: SS101
-- title: The loop waits for data
-- severity: problem
-- verdict: data-bound
-- needs: phases.ratio|step_breakdown.ratio|what_if.saving_ratio
-- tells if: EXISTS (SELECT 1 FROM what_if) OR EXISTS (SELECT 1 FROM phases WHERE name = 'data')
--   OR EXISTS (SELECT 1 FROM between_steps WHERE part = 'between steps: data') OR EXISTS (SELECT 1 FROM step_breakdown)
-- cannot tell: no waits for data were recorded: the program marks none and uses no DataLoader of PyTorch
-- threshold: share = 0.05 (of a step: the TensorBoard plugin's; guide 000 says 0.10)
-- threshold: apart = 1.1 (of the mean of all ranks, ours: one whose device waits no longer than the others' is not named)
-- threshold: saves = 0.02 (of a step, ours: what the step would be shorter without it)
-- advice: more workers (DataLoader's num_workers), persistent_workers, pin_memory; prepare batches ahead; move work out of the
--   dataset's code
-- wrong: the time is spent on copying the batch to the device, or on work that the program does while it holds the phase open
WITH room AS ( -- whether more workers would help
	SELECT CASE WHEN saving_ratio <= :saves THEN 'less work in the dataset''s code: the processors are busy, so more workers hardly help' END AS advice
	FROM what_if WHERE cut = 'workers'),
loader AS (
	SELECT loader || ' in ' || process AS place, sentence,
	       -- waits are of the steps with operators, starts of all that sums stand for
	       CASE WHEN coalesce(workers_ns, 0) > wait_ns * coalesce((SELECT operator_sum_steps / nullif((SELECT sum(has_detail AND is_complete) FROM steps), 0) FROM run), 1) AND limited_by <> 'sampler'
	            THEN 'persistent_workers=True: workers are started once, not for each loop; import less in them'
	            WHEN limited_by IN ('dataset code', 'collate', 'too few workers', 'nothing') AND room.advice IS NOT NULL THEN room.advice
	            WHEN limited_by IN ('dataset code', 'collate') AND idle_ratio IS NULL
	            THEN 'num_workers above 0, with persistent_workers=True; less work in '
	                 || CASE limited_by WHEN 'collate' THEN 'the function that makes a batch' ELSE 'the dataset''s code' END
	            WHEN limited_by = 'dataset code' THEN 'more workers (num_workers); move work out of the dataset''s code'
	            WHEN limited_by = 'collate' THEN 'more workers (num_workers); less work in the function that makes a batch'
	            WHEN limited_by = 'too few workers' THEN 'more workers (num_workers)'
	            WHEN limited_by = 'nothing' THEN 'one worker more: these only just keep up'
	            WHEN limited_by = 'sampler'
	            THEN 'a cheaper sampler: it runs in the process that trains, so other numbers of workers do not help. Draw the indices of an epoch at '
	                 || 'once, and sort or group samples before the loop'
	            WHEN limited_by = 'pinning memory'
	            THEN 'pin less: smaller types, few large tensors. It is done in the process that trains, so other numbers of workers do not help'
	            WHEN limited_by = 'handing over'
	            THEN 'hand over less: few large tensors in place of many objects, smaller types. Other numbers of workers do not help'
	            WHEN limited_by = 'start of workers'
	            THEN 'persistent_workers=True starts them once; fewer workers, and less to import in them, start sooner'
	            WHEN limited_by = 'main process' AND idle_ratio IS NOT NULL
	            THEN 'a larger prefetch_factor: few batches come late, while workers are idle' END AS advice
	FROM data_loader LEFT JOIN room WHERE part = 'loop' ORDER BY wait_ns + coalesce(workers_ns, 0) DESC LIMIT 1),
together AS ( -- ranks that wait for one another are as fast as the slowest: without waits for data, were it no slower than the next (SS602)
	SELECT count(*) AS ranks, nullif(max(own_ns) - max(own_ns - coalesce(data_ns, 0)), 0) AS saving_ns
	FROM ranks WHERE NOT is_slowest
	HAVING count(*) = (SELECT count(*) - 1 FROM ranks) AND (SELECT max(communication_ns) FROM ranks) > 0)
SELECT coalesce((SELECT place FROM loader), 'phase data') AS place,
       as_share(p.ratio) || ' of a step, ' || as_time(p.mean_ns)
         || CASE WHEN together.ranks AND coalesce(together.saving_ns, 0) < p.mean_ns / 2
                 THEN ' on the mean of all ranks, most of it in the one that the others wait for (SS602)' ELSE '' END
         || coalesce('; ' || (SELECT sentence FROM loader), '') AS evidence,
       CASE WHEN together.ranks THEN together.saving_ns ELSE p.mean_ns END AS saving_ns, 'phase data' AS time_of,
       CASE WHEN p.ci95_low_ns > :share * t.mean_ns THEN 0.9 ELSE 0.6 END AS confidence,
       (SELECT advice FROM loader) AS advice, NULL AS cut
FROM phases p JOIN step_time t ON t.process = 'all' LEFT JOIN together
WHERE p.name = 'data' AND p.ratio > :share AND NOT EXISTS (SELECT 1 FROM step_breakdown)
  AND NOT EXISTS (SELECT 1 FROM what_if)
UNION ALL
SELECT 'the device' || coalesce(' of ' || CASE WHEN job.ranks > 1 AND most_ns > :apart * mean_ns THEN most_process END, ''),
       'no device works for ' || as_share(most_ratio) || ' of ' || whole || ', ' || as_time(most_ns)
         || ', while a thread waits for the next batch'
         || CASE WHEN job.ranks > 1 THEN '; on the mean of all ranks for ' || as_share(ratio) ELSE '' END
         || CASE WHEN excess_ns IS NOT NULL THEN '; what of it makes the others wait is not counted here (SS602)' ELSE '' END,
       max(0, gain_ns - coalesce(excess_ns, 0)), 'device idle: data wait', 0.9, (SELECT advice FROM loader), NULL
FROM step_breakdown JOIN (SELECT count(mean_ns) AS ranks FROM ranks) AS job
LEFT JOIN (SELECT process, excess_ns FROM ranks WHERE is_slowest AND excess_ns > :share * mean_ns) AS slowest ON slowest.process = most_process
WHERE part = 'idle: data wait' AND most_ratio > :share AND NOT EXISTS (SELECT 1 FROM what_if)
UNION ALL
SELECT 'between the steps', as_time(b.total_ns / rank_gaps) || ' between two steps', b.total_ns / rank_gaps, 'between steps: data', 0.7, (SELECT advice FROM loader), NULL
FROM between_steps b JOIN step_time t ON t.process = 'all' JOIN run
WHERE b.part = 'between steps: data' AND b.total_ns > :share * t.mean_ns * rank_gaps AND rank_gaps > 0 AND NOT EXISTS (SELECT 1 FROM what_if)
UNION ALL
SELECT coalesce((SELECT place FROM loader),
                (SELECT 'the device' || coalesce(' of ' || CASE WHEN most_ns > :apart * mean_ns AND (SELECT count(*) > 1 FROM ranks) THEN most_process END, '')
                 FROM step_breakdown WHERE part = 'idle: data wait' AND ratio > 0),
                CASE WHEN EXISTS (SELECT 1 FROM phases WHERE name = 'data') THEN 'phase data' ELSE 'waits for batches' END),
       coalesce((SELECT 'no device works for ' || as_share(most_ratio) || ' of ' || whole || ', ' || as_time(most_ns) || ', while a thread waits for the next batch; '
                        || CASE WHEN (SELECT count(*) > 1 FROM ranks) THEN 'on the mean of all ranks for ' || as_share(ratio) || '; ' ELSE '' END
                        || CASE WHEN EXISTS (SELECT 1 FROM ranks WHERE is_slowest AND excess_ns > :saves * mean_ns AND process = most_process)
                                THEN 'other ranks wait for it (SS602); ' ELSE '' END
                 FROM step_breakdown WHERE part = 'idle: data wait' AND ratio > 0),
                (SELECT 'waits take ' || as_share(ratio) || ' of a step, ' || as_time(mean_ns) || '; ' FROM phases
                 WHERE name = 'data' AND NOT EXISTS (SELECT 1 FROM step_breakdown)), '')
         || 'a step without them takes ' || as_time(w.step_ns) || coalesce('; ' || (SELECT sentence FROM loader), ''),
       NULL, NULL, NULL, (SELECT advice FROM loader), 'data'
FROM what_if w WHERE w.cut = 'data' AND w.saving_ratio > :saves
UNION ALL -- what a number of workers reaches, where waits for data are the bound of it
SELECT coalesce((SELECT place FROM loader), 'workers of the loader'),
       w.without || ' a step takes ' || as_time(w.step_ns), NULL, NULL, NULL, 'that number of workers (num_workers), with persistent_workers=True', w.cut
FROM what_if w WHERE w.cut = 'workers' AND w.saving_ratio > :saves
UNION ALL
SELECT coalesce((SELECT place FROM loader), 'batches of the loader'),
       'a step with batches that are easy to hand over takes ' || as_time(w.step_ns), NULL, NULL, NULL,
       'hand over less: few large tensors in place of many objects, smaller types', w.cut
FROM what_if w WHERE w.cut = 'handover' AND w.saving_ratio > :saves
