-- SPDX-License-Identifier: Apache-2.0
-- id: SS204
-- title: Time goes between the steps
-- severity: problem
-- verdict: host-bound
-- needs: between_steps.ratio, step_time.mean_ns
-- tells if: coalesce((SELECT value <> 'cuda memory snapshot' FROM facts WHERE key = 'trace.format'),
--   NOT EXISTS (SELECT 1 FROM ledger WHERE what IN ('dropped', 'damaged')))
-- cannot tell: events are missing from the recording, so that lost steps would look like time between steps; or it is a
--   snapshot of memory, whose annotations are all that is known of steps
-- threshold: share = 0.10 (of a step, ours; guide 004: "slow between epochs")
-- advice: look at what callbacks, logging and plotting do between two steps; record with --with lines
-- wrong: the program marks its steps shorter than they are
SELECT 'between the steps' AS place, as_time(b.total_ns / t.count) || ' between two steps that is no phase, beside steps of '
         || as_time(t.mean_ns) AS evidence,
       b.total_ns / t.count AS saving_ns, 'between steps: other' AS time_of, 0.6 AS confidence
FROM between_steps b JOIN step_time t ON t.process = 'all'
WHERE b.part = 'between steps: other' AND t.count > 1 AND b.total_ns > :share * t.mean_ns * t.count
