-- SPDX-License-Identifier: Apache-2.0
-- id: SS501
-- title: Memory grows from step to step
-- severity: problem
-- needs: memory.growth_bytes_per_step
-- tells if: EXISTS (SELECT 1 FROM memory WHERE category = 'all' AND growth_low_bytes_per_step > :bytes)
--   OR NOT EXISTS (SELECT 1 FROM memory WHERE category = 'all' AND growth_bytes_per_step IS NULL AND peak_bytes IS NULL)
-- cannot tell: of one of the processes allocations or frees are missing: --table memory says why
-- threshold: bytes = 4096 (per step, ours: less is not a leak of tensors)
-- advice: keep loss.item() or loss.detach(), not loss, in lists and sums; clear what collects outputs
-- wrong: a cache or a list of results is meant to grow, or the optimizer makes its state in the recorded steps
SELECT m.process || ', ' || m.device
         || coalesce(': ' || (SELECT coalesce(line, allocated_by) FROM memory_growth g
                              WHERE g.process = m.process AND g.device = m.device
                              ORDER BY g.growth_bytes_per_step DESC LIMIT 1), '') AS place,
       as_bytes(m.growth_bytes_per_step) || ' per step, surely more than ' || as_bytes(m.growth_low_bytes_per_step)
         || coalesce('; ' || as_bytes(m.peak_bytes) || ' at the peak', '') AS evidence,
       NULL AS saving_ns, 0.8 AS confidence
FROM memory m
WHERE m.category = 'all' AND m.growth_low_bytes_per_step > :bytes
