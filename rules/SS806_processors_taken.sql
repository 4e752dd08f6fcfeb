-- SPDX-License-Identifier: Apache-2.0
-- id: SS806
-- title: The loop waits for a processor
-- severity: hint
-- needs: what_if.saving_ratio
-- tells if: EXISTS (SELECT 1 FROM what_if WHERE cut = 'processors')
--   OR (EXISTS (SELECT 1 FROM what_if) AND EXISTS (SELECT 1 FROM steps WHERE wait_for_processor_ns IS NOT NULL))
-- cannot tell: the waits of the steps' thread for a processor were not recorded
-- threshold: saves = 0.10 (of a step, ours: what the step would be shorter without it)
-- advice: look for other programs on the machine (top); fewer threads (torch.set_num_threads) and workers than processors; more processors
--   for the job (taskset, the container's limit)
-- wrong: the machine is shared on purpose
SELECT 'the thread of the steps' AS place,
       'it is ready to run and waits for ' || as_time(w.saving_ns) || ' of a step'
         || coalesce('; its process computes on ' || printf('%.1f', own.used) || coalesce(' of ' || processors.value, '') || ' processors meanwhile', '')
         || coalesce(', with ' || threads.value || ' threads for operators', '') AS evidence,
       NULL AS saving_ns, 0.8 AS confidence, w.cut AS cut
FROM what_if w
LEFT JOIN (SELECT sum(process_cpu_ns) * 1.0 / sum(duration_ns) AS used FROM steps WHERE process_cpu_ns IS NOT NULL) own ON own.used IS NOT NULL
LEFT JOIN (SELECT max(CAST(value AS INTEGER)) AS value FROM facts WHERE key = 'processors') processors ON processors.value IS NOT NULL
LEFT JOIN (SELECT max(CAST(value AS INTEGER)) AS value FROM facts WHERE key = 'torch.threads') threads ON threads.value > processors.value
WHERE w.cut = 'processors' AND w.saving_ratio > :saves
