-- SPDX-License-Identifier: Apache-2.0
-- id: SS506
-- title: Free memory of the device lies in pieces
-- severity: hint
-- needs: memory_segments
-- threshold: share = 0.20 (of what is reserved that is free in segments in use, ours)
-- threshold: piece = 0.50 (of the free memory that its largest piece is, ours)
-- threshold: mebibytes = 256 (that are free, ours: less is rarely what is missing)
-- advice: PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True; sizes that do not change from step to step, such as padded batches
-- wrong: the snapshot was made where much had just been given back, as after an evaluation, and is filled again
SELECT process || ', ' || device AS place,
       as_bytes(free_bytes - releasable_bytes) || ' of ' || as_bytes(reserved_bytes)
         || ' are free, but between blocks in use, and the largest piece has ' || as_bytes(largest_free_bytes) AS evidence,
       NULL AS saving_ns,
       CASE WHEN EXISTS (SELECT 1 FROM memory_failures f WHERE f.process = s.process AND f.device = s.device AND f.why = 'fragmented')
            THEN 0.9 ELSE 0.5 END AS confidence
FROM memory_segments s
WHERE pool = 'all' AND free_bytes - releasable_bytes > :share * reserved_bytes AND free_bytes - releasable_bytes > :mebibytes * 1048576
  AND largest_free_bytes < :piece * (free_bytes - releasable_bytes)
