-- SPDX-License-Identifier: Apache-2.0
-- id: SS602
-- title: One rank is slower than the others
-- severity: problem
-- verdict: straggler-bound
-- needs: ranks
-- tells if: (SELECT count(*) FROM ranks) = 1 OR EXISTS (SELECT 1 FROM ranks WHERE behind_ratio IS NOT NULL OR caused_ns IS NOT NULL)
-- cannot tell: how far ranks are behind one another was not measured
-- threshold: share = 0.05 (of a step, ours)
-- advice: look at what that rank does more: its share of the data, its machine, another program there
-- wrong: its work is larger on purpose, such as logging on rank 0; of a step or two: it was only late when recording began
WITH late AS (SELECT process, host, steps, mean_ns, behind_ns, caused_ns,
                     coalesce(caused_ns - (SELECT max(o.caused_ns) FROM ranks o WHERE o.process <> r.process),
                              own_ns - (SELECT max(o.own_ns) FROM ranks o WHERE o.process <> r.process)) AS saving_ns
              FROM ranks r WHERE is_slowest),
differs AS (SELECT phase, spread_ns FROM rank_phases s JOIN late ON s.slowest = late.process
            WHERE s.phase NOT IN ('step', 'communication') ORDER BY spread_ns DESC LIMIT 1)
SELECT process || coalesce(' on ' || nullif(host, ''), '') AS place,
       coalesce('each of the others waits ' || as_time(caused_ns) || ' for it in collectives of a step',
                as_time(behind_ns) || ' behind the others in each step')
         || coalesce('; it differs most in ' || (SELECT phase || ', by ' || as_time(spread_ns) FROM differs), '') AS evidence,
       saving_ns, CASE WHEN steps < 3 THEN 0.5 ELSE 0.8 END AS confidence,
       (SELECT 'look at what its loader has to do more: its share of the data, its storage, its workers (num_workers), another program there'
        FROM differs WHERE phase = 'data') AS advice
FROM late WHERE saving_ns > :share * mean_ns
