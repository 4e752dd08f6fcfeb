-- SPDX-License-Identifier: Apache-2.0
-- id: SS203
-- title: Steps wait while a checkpoint is written
-- severity: problem
-- verdict: checkpoint-bound
-- needs: phases.ratio|what_if.saving_ratio
-- tells if: EXISTS (SELECT 1 FROM what_if WHERE cut = 'checkpoint') OR EXISTS (SELECT 1 FROM phases WHERE name = 'checkpoint') OR EXISTS (SELECT 1 FROM facts WHERE key = 'torch.version')
-- cannot tell: the program marks no checkpoints, and no torch.save was watched
-- threshold: share = 0.05 (of a step, ours; guide 004 names checkpoints as a cause of slow epochs)
-- threshold: saves = 0.02 (of a step, ours: what the step would be shorter without it)
-- advice: save less often; copy to memory and write from a thread (torch.distributed.checkpoint.async_save); write to a faster
--   disk
-- wrong: the recording is short, and a checkpoint happens to fall into it
SELECT coalesce((SELECT "where" FROM host_waits WHERE cause IN ('torch.save', 'checkpoint') ORDER BY own_ns DESC LIMIT 1),
                'phase checkpoint') AS place,
       as_share(p.ratio) || ' of a step, in ' || p.steps || ' of ' || p.of_steps
         || ' steps, at most ' || as_time(p.max_ns) AS evidence,
       p.mean_ns AS saving_ns, 'phase checkpoint' AS time_of, CASE WHEN p.steps > 2 THEN 0.9 ELSE 0.5 END AS confidence, NULL AS cut
FROM phases p JOIN step_time t ON t.process = 'all'
WHERE p.name = 'checkpoint' AND p.ratio > :share AND NOT EXISTS (SELECT 1 FROM what_if)
UNION ALL
SELECT 'between the steps', as_time(b.total_ns / r.steps) || ' per step', b.total_ns / r.steps, 'between steps: checkpoint', 0.6, NULL
FROM between_steps b JOIN step_time t ON t.process = 'all' JOIN run r
WHERE b.part = 'between steps: checkpoint' AND b.total_ns > :share * t.mean_ns * r.steps AND NOT EXISTS (SELECT 1 FROM what_if)
UNION ALL
SELECT coalesce((SELECT "where" FROM host_waits WHERE cause IN ('torch.save', 'checkpoint') ORDER BY own_ns DESC LIMIT 1), 'checkpoints'),
       coalesce((SELECT 'in ' || steps || ' of ' || of_steps || ' steps, at most ' || as_time(max_ns) || '; ' FROM phases WHERE name = 'checkpoint'), '')
         || 'a step without them takes ' || as_time(w.step_ns), NULL, NULL, NULL, w.cut
FROM what_if w WHERE w.cut = 'checkpoint' AND w.saving_ratio > :saves
