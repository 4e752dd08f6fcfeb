-- SPDX-License-Identifier: Apache-2.0
-- id: SS308
-- title: The device copies and computes nothing
-- severity: problem
-- verdict: copy-bound
-- needs: step_breakdown.ratio
-- threshold: share = 0.10 (of a step, ours; guide 001 warns at 0.30 of the time of its ten largest operators, XProf at 0.30)
-- threshold: saves = 0.02 (of a step, ours: what the step would be shorter without it)
-- advice: copies from and to the host: pinned memory and non_blocking=True, so that the next batch is copied beside the computation; keep
--   on the device what is used again; send smaller types and convert there. Copies on a device: clone(), contiguous(), cat() and the like
--   that can go, or write into the place where the result is wanted
-- wrong: the copies are the work, as in loading a model
SELECT (SELECT copy FROM copies WHERE direction <> 'fill' ORDER BY total_ns DESC LIMIT 1) AS place,
       'for ' || as_share(ratio) || ' of ' || whole || ', ' || as_time(mean_ns) || ', it copies and computes nothing' AS evidence,
       mean_ns AS saving_ns, 'device exposed copies' AS time_of, 0.8 AS confidence, NULL AS cut
FROM step_breakdown WHERE part = 'exposed copies' AND ratio > :share AND NOT EXISTS (SELECT 1 FROM what_if)
UNION ALL
SELECT coalesce((SELECT copy FROM copies WHERE direction <> 'fill' ORDER BY total_ns DESC LIMIT 1), 'copies to the device'),
       coalesce((SELECT 'for ' || as_share(ratio) || ' of ' || whole || ', ' || as_time(mean_ns) || ', the device copies and computes nothing; '
                 FROM step_breakdown WHERE part = 'exposed copies' AND ratio > 0), '')
         || 'a step without copies to the device takes ' || as_time(w.step_ns), NULL, NULL, NULL, w.cut
FROM what_if w WHERE w.cut = 'copy' AND w.saving_ratio > :saves
