-- SPDX-License-Identifier: Apache-2.0
-- id: SS802
-- title: A process did not end well
-- severity: problem
-- headline: did not end well
-- needs: processes.end
-- tells if: NOT EXISTS (SELECT 1 FROM facts WHERE key = 'trace.format')
-- cannot tell: another tool recorded this, which does not say how processes end
-- threshold: status = 0 (an exit status above that, ours)
-- advice: what it did last says where to look; the others wait for it in their next collective
-- wrong: the program was ended on purpose
WITH died AS (
    SELECT *, coalesce('rank ' || rank || ', ', '') || 'pid ' || pid || coalesce(' on ' || host, '') AS place,
           coalesce(signal IN ('SIGTERM', 'SIGINT', 'SIGHUP'), 0) AS is_asked -- by whoever started it, or wants it ended
    FROM processes
    WHERE signal IS NOT NULL OR exit_status > :status
          -- gone before anybody saw how, in a run that failed
          OR (role = 'trainer' AND end = 'did not close its recording'
              AND EXISTS (SELECT 1 FROM processes WHERE signal IS NOT NULL OR exit_status > :status))),
-- where ranks die, whoever started them ends the others
culprit AS (SELECT * FROM died WHERE role = 'trainer' AND NOT is_asked ORDER BY first_ns + wall_ns LIMIT 1)
SELECT place,
       end || coalesce('; its last step is ' || last_step, '') || coalesce(', in ' || last_open, '')
           || coalesce((SELECT '; ' || culprit.place || ' had died by then: whoever started both ended this one' FROM culprit
                        WHERE died.is_asked AND culprit.parent_pid = died.parent_pid), '') AS evidence,
       NULL AS saving_ns, CASE WHEN is_asked OR (signal IS NULL AND exit_status IS NULL) THEN 0.7 ELSE 1.0 END AS confidence
FROM died
WHERE NOT (role <> 'trainer' AND exit_status IS NOT NULL
           -- who passes on how a process below it ended did not die itself
           AND (EXISTS (SELECT 1 FROM died AS below WHERE below.parent_pid = died.pid)
                OR (exit_status > 128 AND EXISTS (SELECT 1 FROM died AS killed WHERE killed.signal IS NOT NULL))))
ORDER BY is_asked, first_ns + wall_ns
LIMIT 20
