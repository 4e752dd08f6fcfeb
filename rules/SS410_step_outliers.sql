-- SPDX-License-Identifier: Apache-2.0
-- id: SS410
-- title: Many steps take far longer than the others
-- severity: hint
-- needs: step_time.std_ns
-- tells if: (SELECT count > 100 FROM step_time WHERE process = 'all')
-- cannot tell: at most 100 complete steps were recorded
-- threshold: deviations = 3 (standard deviations above the mean step: SageMaker's debugger)
-- threshold: outliers = 10 (more than that: SageMaker's debugger)
-- advice: look at these steps in the table steps, and at what grows in them; SS409 says it when they come at the same distance
-- wrong: evaluations and checkpoints are marked as steps; batches differ in size on purpose
WITH marked AS (SELECT s.*, length_ns > t.mean_ns + :deviations * t.std_ns AS is_slow
                FROM steps s JOIN step_time t ON t.process = 'all' WHERE is_program),
     means AS (SELECT is_slow, count(DISTINCT step) AS count, avg(length_ns) AS step_ns, avg(data_ns) AS data, avg(forward_ns) AS forward,
                      avg(backward_ns) AS backward, avg(optimizer_ns) AS optimizer, avg(communication_ns) AS communication,
                      avg(checkpoint_ns) AS checkpoint, avg(evaluation_ns) AS evaluation, avg(other_ns) AS other
               FROM marked GROUP BY is_slow),
     pairs AS (SELECT s.count AS count, s.step_ns AS step_ns, n.step_ns AS usual_ns, s.data - n.data AS data, s.forward - n.forward AS forward,
                      s.backward - n.backward AS backward, s.optimizer - n.optimizer AS optimizer,
                      s.communication - n.communication AS communication, s.checkpoint - n.checkpoint AS checkpoint,
                      s.evaluation - n.evaluation AS evaluation, s.other - n.other AS other
               FROM means s JOIN means n ON s.is_slow AND NOT n.is_slow),
     grown AS (SELECT 'data' AS phase, data AS more FROM pairs
               UNION ALL SELECT 'forward', forward FROM pairs
               UNION ALL SELECT 'backward', backward FROM pairs
               UNION ALL SELECT 'optimizer', optimizer FROM pairs
               UNION ALL SELECT 'communication', communication FROM pairs
               UNION ALL SELECT 'checkpoint', checkpoint FROM pairs
               UNION ALL SELECT 'evaluation', evaluation FROM pairs
               UNION ALL SELECT 'no phase', other FROM pairs)
SELECT 'step ' || (SELECT step FROM marked WHERE is_slow ORDER BY length_ns DESC LIMIT 1) AS place,
       p.count || ' of ' || t.count || ' steps, ' || as_time(step_ns) || ' on the mean, the others ' || as_time(usual_ns)
         || coalesce('; the time goes to ' || (SELECT phase || ', ' || as_time(more) FROM grown, pairs
                     -- of steps without operators only some phases are known: the time may be in one of the others
                     WHERE more > 0 AND (other IS NOT NULL OR 2 * more >= step_ns - usual_ns) ORDER BY more DESC LIMIT 1), '')
         AS evidence,
       (step_ns - usual_ns) * p.count / t.count AS saving_ns, 0.6 AS confidence
FROM pairs p JOIN step_time t ON t.process = 'all'
WHERE p.count > :outliers
