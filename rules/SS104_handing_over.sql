-- SPDX-License-Identifier: Apache-2.0
-- id: SS104
-- title: Handing over batches takes long
-- severity: problem
-- verdict: data-bound
-- needs: what_if.saving_ratio
-- tells if: EXISTS (SELECT 1 FROM what_if WHERE cut IN ('workers', 'handover'))
-- cannot tell: no loop over a map-style DataLoader of PyTorch was recorded, or its batches come out of order
-- threshold: saves = 0.02 (of a step, ours: what the step would be shorter without it)
-- advice: hand over less: few large tensors in place of many objects, smaller types
-- wrong: workers do not answer because their own code holds Python's lock
SELECT coalesce((SELECT loader || ' in ' || process FROM data_loader WHERE part = 'loop' ORDER BY wait_ns DESC LIMIT 1), 'batches of the loader') AS place,
       coalesce((SELECT 'pickling takes ' || as_time(pickling_ns / dispatched) || ' for a batch, unpickling ' || as_time(unpickling_ns / batches) || '; '
                 FROM data_loader WHERE part = 'loop' AND dispatched > 0 AND batches > 0 ORDER BY wait_ns DESC LIMIT 1), '')
         || 'with batches that are easy to hand over a step takes ' || as_time(w.step_ns) AS evidence,
       NULL AS saving_ns, NULL AS confidence, w.cut AS cut
FROM what_if w WHERE w.cut = 'handover' AND w.saving_ratio > :saves
