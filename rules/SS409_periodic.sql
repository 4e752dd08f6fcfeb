-- SPDX-License-Identifier: Apache-2.0
-- id: SS409
-- title: Every so many steps one is slow
-- severity: hint
-- needs: steps.is_outlier|what_if.saving_ratio
-- tells if: EXISTS (SELECT 1 FROM what_if WHERE cut = 'periodic') OR (SELECT count >= 10 FROM step_time WHERE process = 'all')
-- cannot tell: fewer than 10 complete steps were recorded
-- threshold: times = 3 (slow steps at the same distance, where no other step is slow, ours)
-- threshold: many = 5 (slow steps at the same distance, where others are slow by chance, ours)
-- threshold: share = 0.7 (of the slow steps, and of the steps at that distance, those that are both, ours)
-- threshold: saves = 0.02 (of a step, ours: what the step would be shorter without it)
-- advice: what happens there by plan: a checkpoint, an evaluation, a log, a collection of garbage; do it less often or beside the steps.
--   The steady state is the median, not the mean
-- wrong: that work is wanted where it is
WITH program AS (SELECT step, max(is_outlier) AS o FROM steps WHERE is_program GROUP BY step),
     -- the first three are slow for reasons of their own
     behind AS (SELECT step, o FROM program ORDER BY step LIMIT -1 OFFSET 3),
     slow AS (SELECT step, step - lag(step) OVER w AS one, step - lag(step, 2) OVER w AS two, step - lag(step, 3) OVER w AS three
              FROM behind WHERE o WINDOW w AS (ORDER BY step)),
     -- on a machine that others use some steps are slow by chance, also between two that are at the same distance
     distances AS (SELECT step, one AS low FROM slow UNION ALL SELECT step, two FROM slow UNION ALL SELECT step, three FROM slow),
     likely AS (SELECT low, step % low AS place FROM distances WHERE low > 1 GROUP BY 1, 2 ORDER BY count(*) DESC, low LIMIT 20),
     bounds AS (SELECT l.low, l.place, min(s.step) AS first, max(s.step) AS last FROM likely l JOIN slow s ON s.step % l.low = l.place GROUP BY 1, 2),
     -- a step with operators in between may be one, too: it is not known of it
     fits AS (SELECT low, first, sum(o AND step % low = place) AS count, sum(step % low = place) AS there,
                     (SELECT count(*) FROM slow) AS outliers
              FROM bounds JOIN behind ON step BETWEEN first AND last GROUP BY low, place),
     spikes AS (SELECT low, first, count FROM fits
                WHERE (count >= :times AND count = there AND count = outliers)
                   OR (count >= :many AND count >= :share * there AND count >= :share * outliers)
                ORDER BY count DESC, low LIMIT 1),
     means AS (SELECT is_outlier AS o, avg(length_ns) AS step_ns, avg(data_ns) AS data, avg(forward_ns) AS forward,
                      avg(backward_ns) AS backward, avg(optimizer_ns) AS optimizer, avg(communication_ns) AS communication,
                      avg(checkpoint_ns) AS checkpoint, avg(evaluation_ns) AS evaluation, avg(other_ns) AS other
               FROM steps WHERE is_program GROUP BY is_outlier),
     grown AS (SELECT 'data' AS phase, s.data - n.data AS more FROM means s JOIN means n ON s.o AND NOT n.o
               UNION ALL SELECT 'forward', s.forward - n.forward FROM means s JOIN means n ON s.o AND NOT n.o
               UNION ALL SELECT 'backward', s.backward - n.backward FROM means s JOIN means n ON s.o AND NOT n.o
               UNION ALL SELECT 'optimizer', s.optimizer - n.optimizer FROM means s JOIN means n ON s.o AND NOT n.o
               UNION ALL SELECT 'communication', s.communication - n.communication FROM means s JOIN means n ON s.o AND NOT n.o
               UNION ALL SELECT 'checkpoint', s.checkpoint - n.checkpoint FROM means s JOIN means n ON s.o AND NOT n.o
               UNION ALL SELECT 'evaluation', s.evaluation - n.evaluation FROM means s JOIN means n ON s.o AND NOT n.o
               UNION ALL SELECT 'no phase', s.other - n.other FROM means s JOIN means n ON s.o AND NOT n.o)
SELECT 'every ' || low || ' steps, from step ' || first AS place,
       count || ' slow steps, ' || as_time(s.step_ns) || ' on the mean, the others ' || as_time(n.step_ns)
         || coalesce('; the time goes to ' || (SELECT phase || ', ' || as_time(more) FROM grown
                     -- of steps without operators only some phases are known: the time may be in one of the others
                     WHERE more > 0 AND (s.other IS NOT NULL OR 2 * more >= s.step_ns - n.step_ns) ORDER BY more DESC LIMIT 1), '')
         AS evidence,
       (s.step_ns - n.step_ns) * count / (SELECT t.count FROM step_time t WHERE t.process = 'all') AS saving_ns, 0.8 AS confidence, NULL AS cut
FROM spikes JOIN means s ON s.o JOIN means n ON NOT n.o
WHERE NOT EXISTS (SELECT 1 FROM what_if WHERE cut = 'periodic' AND saving_ratio > :saves) -- else the same with a saving
UNION ALL
SELECT coalesce((SELECT 'every ' || low || ' steps, from step ' || first FROM spikes), 'some steps'),
       'a step without it takes ' || as_time(w.step_ns) || '; the usual step does not have these calls and this host time', NULL, NULL, w.cut
FROM what_if w WHERE w.cut = 'periodic' AND w.saving_ratio > :saves
