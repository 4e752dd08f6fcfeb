-- SPDX-License-Identifier: Apache-2.0
-- id: SS101
-- title: The loop waits for data
-- severity: problem
-- verdict: data-bound
-- needs: phases.ratio
-- tells if: EXISTS (SELECT 1 FROM phases WHERE name = 'data')
--   OR EXISTS (SELECT 1 FROM between_steps WHERE part = 'between steps: data') OR EXISTS (SELECT 1 FROM step_breakdown)
-- cannot tell: no waits for data were recorded: the program marks none and uses no DataLoader of PyTorch
-- threshold: share = 0.05 (of a step: the TensorBoard plugin's; guide 000 says 0.10)
-- advice: more workers (DataLoader's num_workers), persistent_workers, pin_memory; prepare batches ahead; move work out of the
--   dataset's code
-- wrong: the time is spent on copying the batch to the device, or on work that the program does while it holds the phase open
SELECT coalesce((SELECT loader || ' in ' || process FROM data_loader WHERE part = 'loop' ORDER BY wait_ns DESC LIMIT 1),
                'phase data') AS place,
       as_share(p.ratio) || ' of a step, ' || as_time(p.mean_ns)
         || coalesce('; ' || (SELECT sentence FROM data_loader WHERE part = 'loop' ORDER BY wait_ns DESC LIMIT 1), '') AS evidence,
       p.mean_ns AS saving_ns,
       CASE WHEN p.ci95_low_ns > :share * t.mean_ns THEN 0.9 ELSE 0.6 END AS confidence
FROM phases p JOIN step_time t ON t.process = 'all'
WHERE p.name = 'data' AND p.ratio > :share AND NOT EXISTS (SELECT 1 FROM step_breakdown)
UNION ALL
SELECT 'the device', 'no device works for ' || as_share(ratio) || ' of ' || whole || ', ' || as_time(mean_ns)
         || ', while a thread waits for the next batch', mean_ns, 0.9
FROM step_breakdown WHERE part = 'idle: data wait' AND ratio > :share
UNION ALL
SELECT 'between the steps', as_time(b.total_ns / t.count) || ' between two steps', b.total_ns / t.count, 0.7
FROM between_steps b JOIN step_time t ON t.process = 'all'
WHERE b.part = 'between steps: data' AND b.total_ns > :share * t.mean_ns * t.count
