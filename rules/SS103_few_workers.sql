-- SPDX-License-Identifier: Apache-2.0
-- id: SS103
-- title: More workers of the loader make steps shorter
-- severity: problem
-- verdict: data-bound
-- needs: what_if.saving_ratio
-- tells if: EXISTS (SELECT 1 FROM what_if WHERE cut = 'workers')
-- cannot tell: no loop over a map-style DataLoader of PyTorch was recorded, or its batches come out of order
-- threshold: saves = 0.02 (of a step, ours: what the step would be shorter without it)
-- advice: that number of workers (num_workers), with persistent_workers=True
-- wrong: there is no memory for so many workers, or the disk is not faster for several readers
SELECT coalesce((SELECT loader || ' in ' || process FROM data_loader WHERE part = 'loop' ORDER BY wait_ns DESC LIMIT 1), 'workers of the loader') AS place,
       w.without || ' a step takes ' || as_time(w.step_ns) AS evidence,
       NULL AS saving_ns, NULL AS confidence, w.cut AS cut
FROM what_if w WHERE w.cut = 'workers' AND w.saving_ratio > :saves
