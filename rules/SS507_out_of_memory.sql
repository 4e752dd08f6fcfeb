-- SPDX-License-Identifier: Apache-2.0
-- id: SS507
-- title: A process ended out of memory
-- severity: problem
-- headline: out of memory
-- needs: processes.end
-- tells if: NOT EXISTS (SELECT 1 FROM facts WHERE key = 'trace.format')
--   OR (EXISTS (SELECT 1 FROM memory_segments) AND NOT EXISTS (SELECT 1 FROM ledger WHERE code = 'no events'))
-- cannot tell: another tool recorded this, which does not say how processes end
-- threshold: ends = 0 (ours)
-- advice: smaller batches with accumulation, checkpointing of activations, bfloat16
-- wrong: the program tried a size on purpose, and its end has another cause
WITH grown AS ( -- the operation whose memory grows most
	SELECT o.*,
	       (SELECT coalesce(g.line, g.allocated_by) FROM memory_growth g WHERE g.process = o.process AND g.device = o.device
	        ORDER BY g.growth_bytes_per_step DESC LIMIT 1) AS grower,
	       (SELECT coalesce(nullif(p.category, 'other') || ' of ' || p.allocated_by, p.allocated_by, p.category) || ', ' || as_bytes(p.alive_bytes) FROM memory_peak p
	        WHERE p.process = o.process AND p.device = o.device ORDER BY p.alive_bytes DESC LIMIT 1) AS holder
	FROM out_of_memory o)
SELECT process || CASE WHEN device = 'host' THEN '' ELSE ', ' || device END || coalesce(': ' || failing_line, '') AS place,
       CASE how WHEN 'exception' THEN what
                WHEN 'control group' THEN 'the kernel killed it at the limit of its control group' || coalesce(', ' || as_bytes(memory_limit_bytes), '')
                WHEN 'kernel' THEN 'the kernel killed it while the machine or a control group was full'
                ELSE 'its last request, ' || as_bytes(asked_bytes) || ', did not fit into ' || as_bytes(memory_limit_bytes) END
         || coalesce('; its last step is ' || step, '')
         || CASE WHEN end_growth_bytes_per_step IS NOT NULL THEN
                  CASE growth_source WHEN 'allocations' THEN '; memory' ELSE '; resident memory' END || ' grows by ' || as_bytes(end_growth_bytes_per_step)
                    || ' per step since step ' || since_step
                    || CASE growth_source WHEN 'allocations' THEN coalesce(', most of it ' || coalesce(nullif(growing_category, 'other') || ' of ', '') || grower, '')
                                   ELSE '' END
                    || coalesce('; at this rate the limit of ' || as_bytes(memory_limit_bytes) || ' allows step ' || limit_step,
                                '; which step the limit allows is unknown')
                 WHEN growth_source IS NOT NULL THEN '; memory does not grow from step to step: one step needs more than there is'
                 ELSE '; whether memory grew from step to step is unknown' END
         || coalesce('; at the peak most is ' || holder, '') AS evidence,
       NULL AS saving_ns, 1.0 AS confidence,
       CASE WHEN end_growth_bytes_per_step IS NOT NULL
            THEN 'keep loss.item() or loss.detach(), not loss, in lists and sums; clear what collects outputs'
            WHEN how IN ('kernel', 'control group') THEN 'fewer or smaller workers, caches and batches, or a higher limit'
            END AS advice
FROM grown WHERE (SELECT count(*) FROM out_of_memory) > :ends LIMIT 20
