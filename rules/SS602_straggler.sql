-- SPDX-License-Identifier: Apache-2.0
-- id: SS602
-- title: Ranks wait for slower ones
-- severity: problem
-- verdict: straggler-bound
-- needs: ranks|what_if.saving_ratio
-- tells if: CASE WHEN (SELECT missing_ranks FROM run) IS NULL
--   THEN EXISTS (SELECT 1 FROM what_if WHERE cut = 'rank') OR (SELECT count(*) FROM ranks) = 1
--     OR EXISTS (SELECT 1 FROM ranks WHERE excess_ns IS NOT NULL)
--   ELSE EXISTS (SELECT 1 FROM what_if WHERE cut = 'rank' AND saving_ratio > :saves)
--     OR (EXISTS (SELECT 1 FROM ranks WHERE is_slowest AND excess_ns > :share * mean_ns) AND NOT EXISTS (SELECT 1 FROM what_if)) END
-- cannot tell: ranks of the job are not here (the ledger says which), or how long ranks wait for one another was not measured
-- threshold: share = 0.05 (of a step, ours)
-- threshold: saves = 0.02 (of a step, ours: what the step would be shorter without it)
-- advice: look at what that rank does more: its share of the data, its machine, another program there
-- threshold: phase = 0.25 (of what the others wait, ours: a phase that differs by less is not where the rank is late)
-- threshold: one_step = 0.5 (of what the others wait, ours: of ten steps or more, one that has as much is named)
-- wrong: its work is larger on purpose, such as logging on rank 0; of a step or two: it was only late when recording began
WITH least AS (SELECT CASE WHEN EXISTS (SELECT 1 FROM what_if) THEN :saves ELSE :share END AS ratio),
late AS (SELECT process, host, steps, behind_ns, caused_ns, excess_ns,
                     CASE WHEN steps >= 10 AND worst_step_ratio > :one_step THEN worst_step END AS only_step, worst_step_ratio
              FROM ranks WHERE is_slowest AND excess_ns > (SELECT ratio FROM least) * mean_ns),
-- who would be the slowest then
second AS (SELECT process, host, steps, then_excess_ns
           FROM ranks WHERE then_excess_ns > (SELECT ratio FROM least) * mean_ns AND EXISTS (SELECT 1 FROM late)),
differs AS (SELECT phase, spread_ns FROM rank_phases s JOIN late ON s.slowest = late.process
            WHERE s.phase NOT IN ('step', 'communication') AND spread_ns > :phase * coalesce(late.caused_ns, late.behind_ns)
            ORDER BY spread_ns DESC LIMIT 1),
-- no single one is to blame for what remains: several are late together, or each in its turn
apart AS (SELECT avg(waited_ns) AS waited_ns, avg(mean_ns) AS mean_ns, max(steps) AS steps,
                 coalesce((SELECT sum(excess_ns) FROM late), 0) + coalesce((SELECT sum(then_excess_ns) FROM second), 0) AS told_ns
          FROM ranks),
together AS (SELECT process FROM ranks, apart WHERE 2 * ranks.waited_ns < apart.waited_ns),
culprits AS (SELECT * FROM together UNION ALL SELECT process FROM ranks WHERE caused_ns > 0 AND NOT EXISTS (SELECT 1 FROM together)),
told AS (
	SELECT process || coalesce(' on ' || nullif(host, ''), '') || coalesce(', in ' || (SELECT phase FROM differs), '') AS place,
	       coalesce('on average each of the others waits ' || as_time(caused_ns) || ' for it in collectives of a step',
	                as_time(behind_ns) || ' behind the others in each step')
	         || coalesce('; it differs most in ' || (SELECT phase || ', by ' || as_time(spread_ns) FROM differs), '')
	         || coalesce('; ' || as_share(worst_step_ratio) || ' of that is of step ' || only_step || ' alone', '')
	         || coalesce((SELECT '; from ' || operator_steps || ' of ' || run.steps || ' steps, those with operators in all ranks'
	                      FROM run WHERE operator_steps < run.steps AND late.caused_ns IS NOT NULL), '') AS evidence,
	       excess_ns AS saving_ns, CASE WHEN steps < 3 OR only_step IS NOT NULL THEN 0.5 ELSE 0.8 END AS confidence,
	       (SELECT 'look at what its loader has to do more: its share of the data, its storage, its workers (num_workers), another program there'
	        FROM differs WHERE phase = 'data') AS advice, 1 AS number
	FROM late
	UNION ALL
	SELECT second.process || coalesce(' on ' || nullif(second.host, ''), '')
	         || coalesce(', in ' || (SELECT phase FROM rank_phases WHERE slowest = second.process AND phase NOT IN ('step', 'communication', 'other')
	                                   AND spread_ns > :phase * then_excess_ns
	                                 ORDER BY spread_ns DESC LIMIT 1), '') || ', behind ' || late.process,
	       'once ' || late.process || ' is as fast as the others, they wait ' || as_time(then_excess_ns) || ' for this one in collectives of a step',
	       then_excess_ns, CASE WHEN second.steps < 3 THEN 0.5 ELSE 0.8 END, NULL, 2
	FROM second JOIN late
	UNION ALL
	SELECT (SELECT CASE WHEN count(*) > 4 THEN count(*) || ' ranks' ELSE group_concat(process, ', ') END FROM culprits),
	       'ranks wait ' || as_time(waited_ns) || ' for one another in collectives of a step, on the mean of all (nothing, were all equally late)'
	         || coalesce('; beyond what is told of ' || (SELECT process FROM late) || ',', ';') || ' no single one is to blame'
	         || CASE WHEN (SELECT count(*) FROM together) > 1 THEN ': several are late together'
	                 WHEN NOT EXISTS (SELECT 1 FROM together) AND steps > 2 THEN ': each is late in its turn' ELSE '' END,
	       waited_ns - told_ns, CASE WHEN steps < 3 THEN 0.5 ELSE 0.6 END,
	       CASE WHEN (SELECT count(*) FROM together) > 1 THEN 'look at what these ranks share: a machine, a switch, a storage, a stage of the model'
	            WHEN NOT EXISTS (SELECT 1 FROM together) AND steps > 2
	            THEN 'look at what differs from batch to batch: lengths of samples, waits for data, other programs' END, 3
	FROM apart WHERE waited_ns - told_ns > (SELECT ratio FROM least) * mean_ns),
replayed AS (SELECT cut, step_ns, saving_ratio, saving_low_ratio FROM what_if WHERE cut = 'rank' AND saving_ratio > :saves)
SELECT place, evidence, saving_ns, 'between ranks' AS time_of, confidence, advice, NULL AS cut FROM told WHERE NOT EXISTS (SELECT 1 FROM what_if)
UNION ALL
SELECT coalesce(place, 'ranks'), coalesce(evidence || '; ', '') || 'with all ranks at their median a step takes ' || as_time(step_ns), NULL, NULL,
       CASE WHEN saving_low_ratio > 0.5 * saving_ratio THEN coalesce(confidence, 0.9) ELSE 0.6 END, advice, cut
FROM replayed LEFT JOIN told ON number = (SELECT min(number) FROM told)
UNION ALL
SELECT place, evidence, NULL, NULL, confidence, advice, NULL -- the replay of the first one has their saving
FROM replayed JOIN told ON number > (SELECT min(number) FROM told)
