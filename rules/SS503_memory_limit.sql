-- SPDX-License-Identifier: Apache-2.0
-- id: SS503
-- title: Memory of the device is almost full
-- severity: problem
-- needs: memory.peak_bytes
-- tells if: EXISTS (SELECT 1 FROM facts WHERE key LIKE 'device.%.totalGlobalMem')
--   AND EXISTS (SELECT 1 FROM memory WHERE device LIKE 'device %')
-- cannot tell: how much memory the device has, or what was allocated there, was not recorded
-- threshold: share = 0.90 (of the device's memory: the TensorBoard plugin's; guide 000 sees a risk above 0.98)
-- advice: checkpointing of activations, bfloat16, smaller batches with accumulation; set_to_none for gradients
-- wrong: an allocation that is meant to take what is there, as a cache of keys and values
SELECT m.process || ', ' || m.device AS place,
       as_bytes(m.peak_bytes) || ' at the peak, ' || as_share(m.peak_bytes / CAST(f.value AS REAL)) || ' of '
         || as_bytes(CAST(f.value AS INTEGER)) AS evidence,
       NULL AS saving_ns, 0.8 AS confidence
FROM memory m JOIN facts f ON f.key = replace(m.device, 'device ', 'device.') || '.totalGlobalMem'
WHERE m.category = 'all' AND m.peak_bytes > :share * CAST(f.value AS REAL)
