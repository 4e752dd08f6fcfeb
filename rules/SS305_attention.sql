-- SPDX-License-Identifier: Apache-2.0
-- id: SS305
-- title: Attention is computed in single operators
-- severity: hint
-- needs: kernels, ops.device_ns
-- tells if: EXISTS (SELECT 1 FROM ops WHERE name LIKE 'aten::%')
-- cannot tell: no operators of PyTorch were recorded
-- threshold: share = 0.02 (of the time of devices in softmax, ours; guide 000 expects 0.05 to 0.10 where attention is not one kernel)
-- advice: torch.nn.functional.scaled_dot_product_attention, whose flash or memory efficient kernels do the whole; look what keeps it
--   from them: a mask, float32, sizes of heads
-- wrong: the softmax is of a loss or of a router
SELECT s.name AS place,
       as_share(s.device_ns * 1.0 / t.all_ns) || ' of the time of devices, ' || as_count(s.calls, 'call') || ', and no flash or memory efficient attention'
         AS evidence,
       NULL AS saving_ns, 0.6 AS confidence
FROM (SELECT name, device_ns, calls FROM ops WHERE name IN ('aten::_scaled_dot_product_attention_math', 'aten::_softmax')
      ORDER BY device_ns DESC LIMIT 1) s, (SELECT sum(self_device_ns) AS all_ns FROM ops) t
WHERE s.device_ns > :share * t.all_ns AND EXISTS (SELECT 1 FROM ops WHERE name IN ('aten::bmm', 'aten::baddbmm'))
  AND NOT EXISTS (SELECT 1 FROM ops WHERE name LIKE '%flash_attention%' OR name LIKE '%efficient_attention%'
                  OR name LIKE '%cudnn_attention%')
