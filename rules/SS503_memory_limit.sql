-- SPDX-License-Identifier: Apache-2.0
-- id: SS503
-- title: Memory of the device is almost full
-- severity: problem
-- needs: memory_totals.used_ratio|telemetry
-- tells if: EXISTS (SELECT 1 FROM memory_totals WHERE used_ratio IS NOT NULL)
--   OR EXISTS (SELECT 1 FROM telemetry u JOIN telemetry o ON o."of" = u."of" AND o.quantity IN ('memory.free', 'memory.total')
--              WHERE u.quantity = 'memory.used' AND u.max IS NOT NULL AND o.max IS NOT NULL)
-- cannot tell: what nvidia-smi says here is not memory.used with memory.free or memory.total
-- threshold: share = 0.90 (of the device's memory: the TensorBoard plugin's; guide 000 sees a risk above 0.98)
-- advice: checkpointing of activations, bfloat16, smaller batches with accumulation; set_to_none for gradients
-- wrong: an allocation that is meant to take what is there, as a cache of keys and values
SELECT process || ', ' || device AS place,
       as_share(used_ratio) || ' of ' || as_bytes(capacity_bytes) || ': PyTorch has taken ' || as_bytes(reserved_peak_bytes)
         || ' at most' || coalesce(', of which ' || as_bytes(unused_peak_bytes) || ' are not given out', '') AS evidence,
       NULL AS saving_ns, 0.8 AS confidence
FROM memory_totals WHERE used_ratio > :share
UNION ALL
SELECT "of", as_share(used / total) || ' at most, by nvidia-smi: ' || printf('%.0f', used) || ' of ' || printf('%.0f', total) || coalesce(' ' || unit, ''),
       NULL, 0.7
FROM (SELECT u."of", u.unit, u.max AS used,
             coalesce((SELECT max FROM telemetry t WHERE t."of" = u."of" AND t.quantity = 'memory.total'),
                      u.max + (SELECT min FROM telemetry f WHERE f."of" = u."of" AND f.quantity = 'memory.free')) AS total
      FROM telemetry u WHERE u.quantity = 'memory.used')
WHERE used > :share * total
