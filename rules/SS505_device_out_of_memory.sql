-- SPDX-License-Identifier: Apache-2.0
-- id: SS505
-- title: The device ran out of memory
-- severity: problem
-- needs: memory_segments|memory_failures
-- tells if: NOT EXISTS (SELECT 1 FROM ledger WHERE code = 'no events')
-- cannot tell: the snapshot has no events: torch.cuda.memory._record_memory_history() was not called before
-- threshold: failures = 0 (ours)
-- advice: smaller batches with accumulation, checkpointing of activations, bfloat16; memory_lines says what was alive at the peak
-- wrong: the program tried a size on purpose and went on with a smaller one
SELECT process || ', ' || device || coalesce(': ' || (SELECT coalesce(line, allocated_by) FROM memory_failures w
                                                      WHERE w.process = f.process AND w.device = f.device AND w.why = f.why
                                                      ORDER BY asked_bytes DESC LIMIT 1), '') AS place,
       as_count(count(*), 'time') || ', ' || why || ': ' || as_bytes(max(asked_bytes)) || ' were asked for, the program had '
         || as_bytes(used_bytes) || ', another ' || as_bytes(unused_bytes) || ' were reserved and not used, and '
         || as_bytes(device_free_bytes) || ' free on the device'
         || CASE WHEN limit_bytes = reserved_bytes AND device_free_bytes > 0
                 THEN ': the process has its own limit, about ' || as_bytes(limit_bytes) ELSE '' END AS evidence,
       NULL AS saving_ns, 1.0 AS confidence,
       CASE WHEN why = 'fragmented' THEN 'PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, sizes that do not change'
            WHEN limit_bytes = reserved_bytes AND device_free_bytes > 0
            THEN 'a larger limit (torch.cuda.set_per_process_memory_fraction()), smaller batches with accumulation, checkpointing of activations, bfloat16'
            END AS advice
FROM memory_failures f
GROUP BY process, device, why HAVING count(*) > :failures
