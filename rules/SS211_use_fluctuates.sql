-- SPDX-License-Identifier: Apache-2.0
-- id: SS211
-- title: The use of a device goes up and down
-- severity: hint
-- needs: telemetry.p95
-- tells if: EXISTS (SELECT 1 FROM telemetry WHERE quantity IN ('utilization.gpu', 'sm') AND unit = '%' AND count >= 20)
-- cannot tell: nvidia-smi was not asked 20 times how busy a device is
-- threshold: high = 70 (per cent that it reaches, its 95 % quantile: SageMaker's debugger)
-- threshold: low = 10 (per cent that it falls below, its 5 % quantile: SageMaker's debugger)
-- threshold: values = 20 (ours: of fewer a quantile says nothing)
-- advice: what comes in turns with the device's work: the loader, evaluations, checkpoints, logs; prepare the next batch meanwhile
-- wrong: the values are of start-up and end as well; or other programs use the device
SELECT "of" AS place,
       printf('nvidia-smi saw kernels run for %.0f %% of the time or more in a twentieth of its %d values, and for %.0f %% or less in another',
              p95, count, p5) AS evidence,
       NULL AS saving_ns, 0.6 AS confidence
FROM telemetry
WHERE quantity IN ('utilization.gpu', 'sm') AND unit = '%' AND count >= :values AND p95 >= :high AND p5 < :low
