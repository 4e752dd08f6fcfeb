-- SPDX-License-Identifier: Apache-2.0
-- id: SS606
-- title: Much is exchanged in small messages
-- severity: hint
-- needs: communication.bytes|collectives.bytes
-- threshold: share = 0.20 (of all bytes: msprof-analyze's)
-- threshold: kibibytes = 1024 (smaller messages are small: msprof-analyze's for links between machines; within one it says 16 MB)
-- threshold: messages = 20 (ours: fewer say nothing)
-- advice: larger buckets (DistributedDataParallel's bucket_cap_mb), fewer and larger units of FSDP, more accumulation per exchange; one
--   exchange of a flat tensor in place of many
-- wrong: the messages are hidden behind computation, as exposed_ns in the tables communication and collectives says
WITH sizes AS (
  SELECT collective, bytes, calls AS count FROM communication WHERE bytes > 0
  UNION ALL
  SELECT collective, bytes, count FROM collectives
  WHERE bytes > 0 AND NOT EXISTS (SELECT 1 FROM communication WHERE bytes > 0)
)
SELECT (SELECT collective FROM sizes WHERE bytes < :kibibytes * 1024 ORDER BY bytes * count DESC LIMIT 1) AS place,
       as_share(small_bytes * 1.0 / all_bytes) || ' of all bytes go in ' || as_count(small, 'message') || ' of ' || as_bytes(small_bytes * 1.0 / small)
         || ' on the mean' AS evidence,
       NULL AS saving_ns, 0.5 AS confidence
FROM (SELECT sum(bytes * count) AS all_bytes, sum(bytes * count * (bytes < :kibibytes * 1024)) AS small_bytes,
             sum(count * (bytes < :kibibytes * 1024)) AS small FROM sizes)
WHERE small >= :messages AND small_bytes > :share * all_bytes
