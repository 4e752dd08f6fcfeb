-- SPDX-License-Identifier: Apache-2.0
-- id: SS407
-- title: A convolution has a bias that the batch norm behind it takes away
-- severity: hint
-- needs: operator_patterns
-- tells if: (SELECT count IS NOT NULL FROM operator_patterns WHERE pattern = 'bias before batch norm')
-- cannot tell: shapes of inputs were not recorded (record_shapes=True, run --with shapes)
-- threshold: times = 0 (TorchTidy's: any)
-- advice: Conv2d(..., bias=False) before BatchNorm2d
-- wrong: the norm is in evaluation mode or frozen
SELECT coalesce(line, module || ', ' || operation, operation) AS place,
       as_count(count, 'convolution') AS evidence,
       NULL AS saving_ns, 0.7 AS confidence
FROM operator_patterns WHERE pattern = 'bias before batch norm' AND count > :times
