-- SPDX-License-Identifier: Apache-2.0
-- id: SS602
-- title: One rank is slower than the others
-- severity: problem
-- verdict: straggler-bound
-- needs: ranks
-- tells if: (SELECT count(*) FROM ranks) = 1 OR EXISTS (SELECT 1 FROM ranks WHERE behind_ratio IS NOT NULL)
-- cannot tell: how far ranks are behind one another was not measured
-- threshold: share = 0.05 (of a step, ours)
-- advice: look at what that rank does more: its share of the data, its machine, another program there
-- wrong: its work is larger on purpose, such as logging on rank 0
SELECT r.process || coalesce(' on ' || r.host, '') AS place,
       as_time(r.behind_ns) || ' behind the others in each step'
         || coalesce('; it differs most in ' || (SELECT phase || ', by ' || as_time(spread_ns) FROM rank_phases s
                                                 WHERE s.slowest = r.process AND s.phase NOT IN ('step', 'communication')
                                                 ORDER BY spread_ns DESC LIMIT 1), '') AS evidence,
       r.behind_ns AS saving_ns, 0.8 AS confidence
FROM ranks r WHERE r.is_slowest AND r.behind_ratio > :share
