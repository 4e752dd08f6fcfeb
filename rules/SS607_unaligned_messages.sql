-- SPDX-License-Identifier: Apache-2.0
-- id: SS607
-- title: Sizes of messages between devices are odd
-- severity: hint
-- needs: communication.bytes
-- threshold: multiple = 16 (bytes that NCCL's kernels move at once, ours; msprof-analyze says 512, for its devices)
-- threshold: share = 0.20 (of all bytes, ours: msprof-analyze names every one)
-- threshold: messages = 20 (ours: fewer say nothing)
-- advice: pad flat buffers and shards to multiples of 16 bytes, as FSDP and optimizers with sharded states can
-- wrong: messages are so large that their last bytes do not matter; the library pads by itself; or they
--   are so small that their begin is what costs (SS606)
SELECT (SELECT collective || ' of ' || bytes || ' bytes' FROM communication WHERE bytes % :multiple <> 0 ORDER BY bytes * calls DESC LIMIT 1) AS place,
       as_share(odd_bytes * 1.0 / all_bytes) || ' of all bytes go in ' || odd || ' messages whose size is no multiple of '
         || printf('%.0f', :multiple) || ' bytes' AS evidence,
       NULL AS saving_ns, 0.4 AS confidence
FROM (SELECT sum(bytes * calls) AS all_bytes, sum(bytes * calls * (bytes % :multiple <> 0)) AS odd_bytes,
             sum(calls * (bytes % :multiple <> 0)) AS odd FROM communication WHERE bytes > 0)
WHERE odd >= :messages AND odd_bytes > :share * all_bytes
