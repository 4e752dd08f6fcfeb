-- SPDX-License-Identifier: Apache-2.0
-- id: SS901
-- title: Events are missing from the recording
-- severity: hint
-- headline: not whole
-- needs: run
-- tells if: NOT EXISTS (SELECT 1 FROM facts WHERE key = 'trace.format')
--   OR EXISTS (SELECT 1 FROM ledger WHERE what IN ('damaged', 'torn tail', 'missing tail'))
-- cannot tell: another tool recorded this, which does not say what it lost
-- threshold: events = 0 (ours)
-- advice: a larger buffer (run --pool), fewer details (run --with), fewer steps (run --steps); stepscope info shows the ledger
-- wrong: the lost events are of a time nobody asks about
WITH missing AS (
  SELECT lost_events || ' events were lost of ' || events AS what, NULL AS code FROM run WHERE lost_events > :events
  UNION ALL
  SELECT * FROM (SELECT sentence || ' (' || sum(count) || ')', code FROM ledger WHERE what IN ('damaged', 'torn tail', 'missing tail')
                 GROUP BY sentence, code ORDER BY code <> 'several writers') -- the other losses follow from that one
)
SELECT 'the recording' AS place, group_concat(what, '; ') AS evidence, NULL AS saving_ns, 1.0 AS confidence,
       CASE WHEN EXISTS (SELECT 1 FROM missing WHERE code = 'several writers')
            THEN 'give each process a file of its own, with its rank in the name, and record again: what is here is of no one process'
            WHEN EXISTS (SELECT 1 FROM facts WHERE key = 'trace.format')
            THEN 'another tool wrote this file: let it end writing before the program does, look for a full disk, copy the file again; what is '
                 || 'left in it was read, stepscope convert writes that as a whole file' END AS advice
FROM missing HAVING count(*) > 0
