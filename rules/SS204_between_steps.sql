-- SPDX-License-Identifier: Apache-2.0
-- id: SS204
-- title: Time goes between the steps
-- severity: problem
-- verdict: host-bound
-- needs: between_steps.ratio|what_if.saving_ratio, step_time.mean_ns
-- tells if: coalesce((SELECT value <> 'cuda memory snapshot' FROM facts WHERE key = 'trace.format'),
--   NOT EXISTS (SELECT 1 FROM ledger WHERE what IN ('dropped', 'damaged')))
-- cannot tell: events are missing from the recording, so that lost steps would look like time between steps; or it is a
--   snapshot of memory, whose annotations are all that is known of steps
-- threshold: share = 0.10 (of a step, ours; guide 004: "slow between epochs")
-- threshold: seconds = 1 (of a hook at the end of an epoch: longer ones are left to SS214)
-- threshold: saves = 0.02 (of a step, ours: what the step would be shorter without it)
-- advice: look at what callbacks, logging and plotting do between two steps; record with --with lines
-- wrong: the program marks its steps shorter than they are
WITH ranges AS (SELECT name, between_ns, max_ns, name LIKE '%on\_%\_epoch\_end' ESCAPE '\' AND max_ns > :seconds * 1e9 AS is_told FROM between_ranges),
gaps AS (SELECT total_ns - coalesce((SELECT sum(between_ns) FROM ranges WHERE is_told), 0) AS total_ns
         FROM between_steps WHERE part = 'between steps: other'),
job AS (SELECT mean_ns, rank_gaps FROM step_time JOIN run WHERE process = 'all'),
most AS (SELECT name, between_ns, max_ns FROM ranges, gaps
         WHERE NOT is_told AND between_ns BETWEEN total_ns / 2 AND total_ns * 1.01 ORDER BY between_ns DESC LIMIT 1),
told AS (
	SELECT coalesce(most.name, 'between the steps') AS place, gaps.total_ns AS total_ns, rank_gaps, job.mean_ns AS mean_ns,
	       as_time(gaps.total_ns / rank_gaps) || ' between two steps, on average, that is no phase, beside steps of ' || as_time(job.mean_ns)
	         || coalesce('; ' || as_share(most.between_ns * 1.0 / gaps.total_ns) || ' of it in this, ' || as_time(most.max_ns) || ' at the longest', '')
	         AS evidence,
	       CASE WHEN most.name IS NOT NULL THEN 'look at what it does, and whether it must be done as often; record with --with lines' END AS advice
	FROM gaps JOIN job LEFT JOIN most WHERE rank_gaps > 0),
-- one cut removes what comes between all steps, another one what comes between some
cuts AS (SELECT cut, place, step_ns, saving_ns, saving_ratio, saving_low_ratio, coalesce(place, '') = 'between the steps' AS is_each FROM what_if
         WHERE saving_ratio > :saves AND (cut = 'periodic' OR cut = 'host' AND place IN ('between the steps', 'once')))
SELECT place, evidence, total_ns / rank_gaps AS saving_ns, 'between steps: other' AS time_of, 0.6 AS confidence, advice,
       NULL AS cut, NULL AS cut_place
FROM told
WHERE total_ns > :share * mean_ns * rank_gaps AND NOT EXISTS (SELECT 1 FROM what_if)
UNION ALL
SELECT told.place, told.evidence || '; a step without it takes ' || as_time(w.step_ns), NULL, NULL,
       NULL, told.advice, w.cut, w.place
FROM cuts w JOIN told
WHERE w.is_each OR NOT EXISTS (SELECT 1 FROM cuts WHERE is_each) AND 2 * told.total_ns > w.saving_ns * (told.rank_gaps + 1)
