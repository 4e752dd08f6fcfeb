-- SPDX-License-Identifier: Apache-2.0
-- id: SS302
-- title: Matrix products and convolutions do without tensor cores
-- severity: hint
-- needs: kernels
-- tells if: (SELECT max(CAST(value AS INTEGER)) >= 7 FROM facts WHERE key LIKE 'device.%.computeMajor')
-- cannot tell: the trace does not say that the device has tensor cores
-- threshold: share = 0.20 (of the time of kernels, ours; the TensorBoard plugin asks for no tensor core kernel at all)
-- threshold: saves = 0.02 (of a step, ours: what the step would be shorter without it)
-- advice: torch.autocast("cuda", dtype=torch.bfloat16), with float32 at least torch.set_float32_matmul_precision("high") on devices
--   from Ampere on; sizes that are multiples of 8
-- wrong: the program needs the full precision of float32
SELECT (SELECT kernel FROM kernels WHERE product = 'float32' ORDER BY total_ns DESC LIMIT 1) AS place,
       as_share(sum(ratio)) || ' of the time of kernels, ' || as_count(sum(calls), 'call') || '; on tensor cores: '
         || as_share(coalesce((SELECT sum(ratio) FROM kernels WHERE is_tensor_core), 0))
         || coalesce((SELECT ', unknown: ' || as_share(sum(ratio)) FROM kernels WHERE work = 'matrix' AND is_tensor_core IS NULL HAVING count(*) > 0), '')
         AS evidence,
       NULL AS saving_ns, 0.7 AS confidence,
       CASE WHEN EXISTS (SELECT 1 FROM what_if WHERE cut = 'precision' AND saving_ratio > :saves) THEN 'precision' END AS cut,
       (SELECT place FROM what_if WHERE cut = 'precision' AND saving_ratio > :saves ORDER BY place LIMIT 1) AS cut_place -- NULL comes first
FROM kernels WHERE product = 'float32'
HAVING sum(ratio) > :share
