-- SPDX-License-Identifier: Apache-2.0
-- id: SS207
-- title: The host waits for the device, and then the device for the host
-- severity: problem
-- verdict: sync-bound
-- needs: step_breakdown.ratio
-- threshold: share = 0.02 (of a step, ours: copies to the host cost little where the device has other work. Guide 004's pattern of
--   .cpu(): kernel, gap, copy to the host, work of the processor, kernel; its table: synchronizations)
-- threshold: call_share = 0.05 (of a step, ours, as SS206's: who needs a result at the end of a step or request waits for it once)
-- threshold: saves = 0.005 (of a step, ours: what the step would be shorter without it)
-- advice: keep sums on the device and read them every 50 steps; copy with non_blocking=True into pinned memory and read it a step later,
--   behind a synchronization; no item(), cpu(), nonzero() or "if tensor" in the loop
-- wrong: the value decides what is launched next
WITH s AS (SELECT sum(total_ns) AS all_ns, sum(mean_ns) AS step_ns,
                  sum(mean_ns) FILTER (WHERE part LIKE 'idle: %' AND part <> 'idle: data wait') AS idle_ns, whole FROM step_breakdown),
told AS (SELECT coalesce((SELECT sum(idle_after_ns) FROM copy_waits WHERE waited_count > 0), 0)
                + coalesce((SELECT sum(kept_idle_ns) FROM sync_waits), 0) AS ns),
waits AS (
SELECT coalesce(w.line, w.module || ', ' || w.operation, w.operation) AS place,
       as_count(w.calls, 'copy') || ' to the host, the thread waits for ' || w.waited_count || ' of them, ' || as_time(w.wait_ns) AS waited,
       w.idle_after_ns, 0.8 AS confidence, NULL AS advice
FROM copy_waits w WHERE w.waited_count > 0
UNION ALL
SELECT coalesce(line, module || ', ' || call, call),
       call || ': ' || as_count(calls, 'call') || ' until the device is done, ' || as_time(wait_ns),
       kept_idle_ns, 0.8,
       'no torch.cuda.synchronize() in the loop: to time it, record torch.cuda.Event(enable_timing=True) and read them a step later; what reads a '
         || 'value waits by itself'
FROM sync_waits, s WHERE kept_idle_ns > :call_share * s.all_ns)
SELECT place, waited || '; behind them the device does nothing for ' || as_share(min(1, idle_after_ns * 1.0 / s.all_ns)) || ' of ' || s.whole AS evidence,
       min(idle_after_ns * 1.0 / s.all_ns * s.step_ns, s.idle_ns) AS saving_ns,
       'device idle: queued + device idle: launch + device idle: host + device idle: synchronization + device idle: runtime calls'
         || ' + device idle: nothing recorded' AS time_of, -- a wait for the next batch behind it is SS101's
       confidence, advice, NULL AS cut
FROM waits, s WHERE idle_after_ns > :share * s.all_ns AND NOT EXISTS (SELECT 1 FROM what_if)
UNION ALL -- what is not behind one of those
SELECT (SELECT call FROM runtime_calls WHERE is_synchronizing ORDER BY total_ns DESC LIMIT 1),
       'the device is done, and for ' || as_share(ratio) || ' of ' || b.whole || ', ' || as_time(mean_ns)
         || ', a thread has not noticed yet: ' || (SELECT as_count(sum(calls), 'call') FROM runtime_calls WHERE is_synchronizing)
         || ' to wait for it',
       mean_ns - told.ns * 1.0 / s.all_ns * s.step_ns, 'device idle: synchronization', 0.7, NULL, NULL
FROM step_breakdown b, s, told WHERE part = 'idle: synchronization' AND total_ns - told.ns > :share * s.all_ns AND NOT EXISTS (SELECT 1 FROM what_if)
UNION ALL
SELECT coalesce((SELECT place FROM waits ORDER BY idle_after_ns DESC LIMIT 1),
                (SELECT call FROM runtime_calls WHERE is_synchronizing ORDER BY total_ns DESC LIMIT 1), 'waits for the device'),
       coalesce((SELECT waited || '; behind them the device does nothing for ' || as_share(min(1, idle_after_ns * 1.0 / s.all_ns)) || ' of ' || s.whole || '; '
                 FROM waits, s ORDER BY idle_after_ns DESC LIMIT 1), '')
         || 'a step without them takes ' || as_time(w.step_ns), NULL, NULL, NULL,
       (SELECT advice FROM waits ORDER BY idle_after_ns DESC LIMIT 1), w.cut
FROM what_if w WHERE w.cut = 'sync' AND w.saving_ratio > :saves
