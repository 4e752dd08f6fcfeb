-- SPDX-License-Identifier: Apache-2.0
-- id: SS602
-- title: One rank is slower than the others
-- severity: problem
-- verdict: straggler-bound
-- needs: ranks
-- tells if: CASE WHEN (SELECT missing_ranks FROM run) IS NULL
--   THEN (SELECT count(*) FROM ranks) = 1 OR EXISTS (SELECT 1 FROM ranks WHERE excess_ns IS NOT NULL)
--   ELSE EXISTS (SELECT 1 FROM ranks WHERE is_slowest AND excess_ns > :share * mean_ns) END
-- cannot tell: ranks of the job are not here (the ledger says which), or how long ranks wait for one another was not measured
-- threshold: share = 0.05 (of a step, ours)
-- advice: look at what that rank does more: its share of the data, its machine, another program there
-- wrong: its work is larger on purpose, such as logging on rank 0; of a step or two: it was only late when recording began
WITH late AS (SELECT process, host, steps, behind_ns, caused_ns, excess_ns
              FROM ranks WHERE is_slowest AND excess_ns > :share * mean_ns),
-- who would be the slowest then
second AS (SELECT process, host, steps, then_excess_ns
           FROM ranks WHERE then_excess_ns > :share * mean_ns AND EXISTS (SELECT 1 FROM late)),
differs AS (SELECT phase, spread_ns FROM rank_phases s JOIN late ON s.slowest = late.process
            WHERE s.phase NOT IN ('step', 'communication') ORDER BY spread_ns DESC LIMIT 1)
SELECT process || coalesce(' on ' || nullif(host, ''), '') || coalesce(', in ' || (SELECT phase FROM differs), '') AS place,
       coalesce('on average each of the others waits ' || as_time(caused_ns) || ' for it in collectives of a step',
                as_time(behind_ns) || ' behind the others in each step')
         || coalesce('; it differs most in ' || (SELECT phase || ', by ' || as_time(spread_ns) FROM differs), '') AS evidence,
       excess_ns AS saving_ns, 'between ranks' AS time_of, CASE WHEN steps < 3 THEN 0.5 ELSE 0.8 END AS confidence,
       (SELECT 'look at what its loader has to do more: its share of the data, its storage, its workers (num_workers), another program there'
        FROM differs WHERE phase = 'data') AS advice
FROM late
UNION ALL
SELECT second.process || coalesce(' on ' || nullif(second.host, ''), '')
         || coalesce(', in ' || (SELECT phase FROM rank_phases WHERE slowest = second.process AND phase NOT IN ('step', 'communication', 'other')
                                 ORDER BY spread_ns DESC LIMIT 1), '') || ', behind ' || late.process,
       'once ' || late.process || ' is as fast as the others, they wait ' || as_time(then_excess_ns) || ' for this one in collectives of a step',
       then_excess_ns, 'between ranks', CASE WHEN second.steps < 3 THEN 0.5 ELSE 0.8 END, NULL
FROM second JOIN late
