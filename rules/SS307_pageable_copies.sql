-- SPDX-License-Identifier: Apache-2.0
-- id: SS307
-- title: Copies go through pageable memory
-- severity: hint
-- needs: copies.from
-- threshold: share = 0.02 (of steps, ours; Nsight Systems reports every asynchronous copy from pageable memory)
-- advice: pin_memory=True for the DataLoader, tensor.pin_memory() for buffers, then to(device, non_blocking=True); from the device with
--   non_blocking=True only into pinned memory, and read after a synchronization
-- wrong: the copies are few and large and nothing could run beside them
SELECT group_concat(direction, ', ') AS place,
       as_share(sum(total_ns) * 1.0 / s.all_ns) || ' of ' || s.whole || ', ' || as_count(sum(calls), 'copy') || ', ' || as_bytes(sum(total_bytes)) || ' at '
         || as_bytes(sum(total_bytes) * 1e9 / sum(total_ns)) || ' per second: the driver copies them through a buffer of its own, and '
         || 'the thread waits for that' AS evidence,
       min(sum(total_ns) * 1.0 / s.all_ns * s.step_ns,
           (SELECT mean_ns FROM step_breakdown WHERE part = 'exposed copies')) AS saving_ns, 'device exposed copies' AS time_of,
       0.8 AS confidence
FROM (SELECT * FROM copies WHERE "from" = 'Pageable' OR "to" = 'Pageable'),
     (SELECT sum(total_ns) AS all_ns, sum(mean_ns) AS step_ns, whole FROM step_breakdown) s
HAVING sum(total_ns) > :share * s.all_ns
