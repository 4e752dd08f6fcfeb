-- SPDX-License-Identifier: Apache-2.0
-- id: SS215
-- title: Evaluation takes a large part of the steps' time
-- severity: hint
-- needs: what_if.saving_ratio
-- tells if: EXISTS (SELECT 1 FROM what_if)
-- cannot tell: the steps could not be replayed (table what_if says why)
-- threshold: saves = 0.10 (of the time of steps, ours)
-- advice: evaluate less often or on fewer batches; a larger batch, torch.inference_mode() and workers for its loader
-- wrong: the model must be evaluated as often
SELECT 'evaluations' AS place,
       coalesce((SELECT as_count(sum(count), 'time') || ', ' || as_time(max(max_ns)) || ' at most; ' FROM host_waits WHERE cause = 'evaluation' HAVING sum(count) > 0), '')
         || 'without them a step takes ' || as_time(w.step_ns) || ': at most that much can be saved' AS evidence,
       NULL AS saving_ns, 0.6 AS confidence, w.cut AS cut
FROM what_if w WHERE w.cut = 'evaluation' AND w.saving_ratio > :saves
