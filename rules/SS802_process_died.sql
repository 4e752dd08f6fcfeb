-- SPDX-License-Identifier: Apache-2.0
-- id: SS802
-- title: A process did not end well
-- severity: problem
-- needs: processes.end
-- tells if: NOT EXISTS (SELECT 1 FROM facts WHERE key = 'trace.format')
-- cannot tell: another tool recorded this, which does not say how processes end
-- threshold: status = 0 (an exit status above that, ours)
-- advice: what it did last says where to look; the others wait for it in their next collective
-- wrong: the program was ended on purpose
SELECT coalesce('rank ' || rank || ', ', '') || 'pid ' || pid || coalesce(' on ' || host, '') AS place,
       end || coalesce('; its last step is ' || last_step, '') || coalesce(', in ' || last_open, '') AS evidence,
       NULL AS saving_ns, 1.0 AS confidence
FROM processes
WHERE (signal IS NOT NULL OR exit_status > :status)
  -- who passes on that a process below it was killed did not die itself
  AND NOT (exit_status > 128 AND role <> 'trainer' AND EXISTS (SELECT 1 FROM processes WHERE signal IS NOT NULL))
