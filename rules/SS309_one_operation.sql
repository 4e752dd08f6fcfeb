-- SPDX-License-Identifier: Apache-2.0
-- id: SS309
-- title: One operation takes most of the time
-- severity: hint
-- needs: ops.step_self_ratio
-- tells if: EXISTS (SELECT 1 FROM ops WHERE name LIKE 'aten::%')
-- cannot tell: no operators of PyTorch were recorded
-- threshold: share = 0.50 (of the time of kernels, without a device of the self time in steps; ours: guide 001 names it without a number)
-- threshold: part = 0.20 (of a step, for a kernel, ours: where the device does nothing most of the time it saves little)
-- advice: look at its shapes and its line first: nothing else saves as much
-- wrong: it is a matrix product, a convolution or attention, which are meant to be large: those on tensor cores are left out
WITH one AS ( -- a call that takes most of the time of its kernel, ten times as long as the others: is it one?
	SELECT kernel, max_ns, (total_ns - max_ns) / (calls - 1) AS others_ns FROM kernels
	WHERE calls > 2 AND incomplete_calls = 0 AND max_ns > 0.5 * total_ns AND max_ns > 10 * (total_ns - max_ns) / (calls - 1))
SELECT kernel AS place, as_share(ratio) || ' of the time of kernels, ' || as_share(min(1, total_ns * 1.0 / s.all_ns)) || ' of ' || s.whole || ', '
         || as_count(calls, 'call') || coalesce(', one of ' || as_time(one.max_ns) || ', the others of ' || as_time(others_ns),
                                                ' of ' || as_time(mean_ns)) AS evidence,
       NULL AS saving_ns, 0.5 AS confidence,
       CASE WHEN others_ns IS NOT NULL THEN 'look whether that call is real: its end may be wrong in the trace, as profilers of AMD devices write it; all sums '
            || 'it is part of are wrong then' END AS advice
FROM kernels LEFT JOIN one USING (kernel), (SELECT sum(total_ns) AS all_ns, whole FROM step_breakdown) s
WHERE ratio > :share AND class = 'compute' AND is_tensor_core IS NOT 1 AND total_ns > :part * s.all_ns
  AND mean_ns IS NOT NULL -- else all its calls have lost their ends
UNION ALL
SELECT name, as_share(step_self_ratio) || ' of the self time in steps, ' || as_count(calls, 'call') || ' of ' || as_time(mean_ns), NULL, 0.5, NULL
FROM ops WHERE step_self_ratio > :share AND kind = 'op' AND name LIKE 'aten::%' AND NOT EXISTS (SELECT 1 FROM kernels)
  AND name NOT IN ('aten::mm', 'aten::addmm', 'aten::bmm', 'aten::baddbmm', 'aten::mkldnn_convolution', 'aten::convolution')
