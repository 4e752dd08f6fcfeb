-- SPDX-License-Identifier: Apache-2.0
-- id: SS408
-- title: Tensors are made on the host and copied to the device
-- severity: hint
-- needs: operator_patterns
-- tells if: (SELECT count IS NOT NULL FROM operator_patterns WHERE pattern = 'tensor made on the host and copied')
-- cannot tell: no copies of a device's runtime were recorded
-- threshold: share = 0.01 (of steps, ours; TorchTidy names every one)
-- advice: make them where they are used: torch.zeros(..., device=device)
-- wrong: the values come from the host, as random numbers of a generator there
SELECT coalesce(line, module || ', ' || operation, operation) AS place,
       as_count(count, 'time') || ', ' || as_time(total_ns) || coalesce(', ' || as_share(ratio) || ' of steps', '') AS evidence,
       ratio * (SELECT mean_ns FROM step_time WHERE process = 'all') AS saving_ns, 0.7 AS confidence
FROM operator_patterns WHERE pattern = 'tensor made on the host and copied' AND ratio > :share
