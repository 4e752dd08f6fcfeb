-- SPDX-License-Identifier: Apache-2.0
-- id: SS503
-- title: Memory of the device is almost full
-- severity: problem
-- needs: memory_totals.used_ratio
-- threshold: share = 0.90 (of the device's memory: the TensorBoard plugin's; guide 000 sees a risk above 0.98)
-- advice: checkpointing of activations, bfloat16, smaller batches with accumulation; set_to_none for gradients
-- wrong: an allocation that is meant to take what is there, as a cache of keys and values
SELECT process || ', ' || device AS place,
       as_share(used_ratio) || ' of ' || as_bytes(capacity_bytes) || ': PyTorch has taken ' || as_bytes(reserved_peak_bytes)
         || ' at most' || coalesce(', of which ' || as_bytes(unused_peak_bytes) || ' are not given out', '') AS evidence,
       NULL AS saving_ns, 0.8 AS confidence
FROM memory_totals WHERE used_ratio > :share
