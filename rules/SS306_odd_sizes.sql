-- SPDX-License-Identifier: Apache-2.0
-- id: SS306
-- title: Matrix products have sizes that tensor cores dislike
-- severity: hint
-- needs: operator_patterns
-- tells if: (SELECT count IS NOT NULL FROM operator_patterns WHERE pattern = 'sizes that tensor cores dislike')
-- cannot tell: shapes and types of inputs were not recorded (record_shapes=True, run --with shapes)
-- threshold: share = 0.05 (of steps, the host's time in these products, ours; TorchTidy names every one)
-- advice: pad vocabularies, heads and batches to multiples of 8, with float8 of 16
-- wrong: the products are small, or the library pads by itself
SELECT coalesce(line, module || ', ' || operation, operation) AS place,
       as_count(count, 'time') || ', ' || as_time(total_ns) || coalesce(', ' || as_share(ratio) || ' of steps', '') AS evidence,
       NULL AS saving_ns, 0.5 AS confidence
FROM operator_patterns WHERE pattern = 'sizes that tensor cores dislike' AND ratio > :share
