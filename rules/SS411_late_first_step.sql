-- SPDX-License-Identifier: Apache-2.0
-- id: SS411
-- title: It takes long until the first step
-- severity: hint
-- needs: processes
-- tells if: NOT EXISTS (SELECT 1 FROM facts WHERE key = 'trace.format')
-- cannot tell: another tool recorded this, from some time in the run on
-- threshold: minutes = 20 (SageMaker's debugger)
-- advice: look at what the program does before: data that is read or prepared whole, a model from a slow disk, compilation, ranks that wait
--   for each other; keep what was prepared
-- wrong: the program marks its steps only from some time on, or none
SELECT coalesce('step ' || (SELECT step FROM steps ORDER BY start_ns LIMIT 1), 'no step') AS place,
       CASE WHEN step_ns IS NULL THEN 'in ' || as_time(all_ns) || ' no step began'
            ELSE 'it began ' || as_time(begin_ns + step_ns) || ' after the run' END AS evidence,
       NULL AS saving_ns, CASE WHEN step_ns IS NULL THEN 0.4 ELSE 0.8 END AS confidence
-- a step's begin counts from the first that is known of its process, that from the begin of the run; both smallest is no more than it took
FROM (SELECT min(first_ns) AS begin_ns, max(first_ns + wall_ns) AS all_ns, (SELECT min(start_ns) FROM steps) AS step_ns
      FROM processes WHERE role = 'trainer')
WHERE coalesce(begin_ns + step_ns, all_ns) > :minutes * 60e9
