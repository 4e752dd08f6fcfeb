# SPDX-License-Identifier: Apache-2.0
"""Hard cases of phases in traces that mark none: forwards without sequence numbers, updates by hand, compiled code, and graphs that no
backward uses."""
import json
import os
import subprocess

import pytest
from hard_tools import STEP, fixture_trace, span, step


def without_kineto(nodes):
    """Four updates by hand, as a PyTorch without Kineto writes them: whole microseconds, no categories, no sequence numbers."""
    def row(start, duration, name):
        return {"name": name, "ph": "X", "ts": start, "dur": duration, "tid": 1, "pid": "CPU functions", "args": {}}
    engine, accumulate = "autograd::engine::evaluate_function: ", "torch::autograd::AccumulateGrad"
    for begin in range(1000, 5000, 1000):
        yield from (row(begin, 50, "aten::linear"), row(begin + 1, 5, "aten::t"), row(begin + 10, 30, "aten::addmm"), row(begin + 60, 20, "aten::mean"),
                    row(begin + 90, 2, "aten::ones_like"))
        for i, node in enumerate(nodes):
            yield from (row(begin + 100 + 30 * i, 20, engine + node), row(begin + 101 + 30 * i, 15, node),
                        row(begin + 120 + 30 * i, 0, "aten::as_strided"))  # the node's own: it ends when that does
        yield from (row(begin + 190, 10, engine + accumulate), row(begin + 191, 8, accumulate), row(begin + 400, 10, "aten::mul"), row(begin + 420, 10, "aten::sub_"))


def test_forwards_are_told_by_the_names_of_nodes_where_there_are_no_sequence_numbers(trace):
    trace.write(list(without_kineto(["MeanBackward0", "AddmmBackward0", "TBackward0"])))
    assert [row["duration_ns"] for row in trace.table("steps")] == [430_000, *[1_000_000] * 3]
    assert trace.query("SELECT name, count(*), sum(dur_ns) FROM spans WHERE kind = 'phase' GROUP BY name ORDER BY name") == [
        ["backward", "4", "440000"], ["forward", "4", "320000"], ["optimizer", "4", "40000"]]
    said, = [text for text in trace.ledger() if "sequence numbers" in text]
    assert "12 of 12 have the name of an operator before them" in said and "uncertain" not in said


def test_a_node_rounded_behind_the_engines_span_around_it_is_that_one(trace):
    """A node of less than a microsecond begins where the engine's span ends; taken for another node it would take the name of the first layer's
    operator, and what it calls would be taken for a forward in the middle of the backward."""
    def row(start, duration, name):
        return {"name": name, "ph": "X", "ts": start, "dur": duration, "tid": 1, "pid": "CPU functions", "args": {}}
    rows, engine, accumulate = [], "autograd::engine::evaluate_function: ", "torch::autograd::AccumulateGrad"
    for begin in range(1000, 4000, 1000):
        for i, name in enumerate(["t", "addmm", "relu", "t", "addmm", "mean", "ones_like"]):
            rows.append(row(begin + 10 * i, 5, f"aten::{name}"))
        for i, node in enumerate(["MeanBackward0", "AddmmBackward0", "TBackward0", accumulate, "ReluBackward0", "AddmmBackward0", "TBackward0", accumulate]):
            start = begin + 100 + 10 * i
            rows += [row(start, 1, engine + node), row(start + 1, 0, node), row(start + 1, 0, "aten::t")]
    trace.write(rows)
    assert trace.query("SELECT kind, name, count(*) FROM spans WHERE kind IN ('step', 'phase') GROUP BY kind, name ORDER BY name") == [
        ["phase", "backward", "3"], ["phase", "forward", "3"], ["step", "step", "3"]]
    said, = [text for text in trace.ledger() if "sequence numbers" in text]
    assert "18 of 18 have the name of an operator before them" in said


def test_names_of_nodes_that_no_operator_has_leave_phases_uncertain(trace):
    trace.write(list(without_kineto(["MineBackward", "YoursBackward", "TBackward0"])))
    said, = [text for text in trace.ledger() if "sequence numbers" in text]
    assert "4 of 12" in said and "less than half, so steps and phases are uncertain" in said


GRADIENTS = 3


def by_hand(update, backwards=1):
    """Four steps of a loop without an optimizer, as Kineto writes them: batches, each with a forward, of which one operator is in place, and a backward;
    then the update: names, when they begin, and their sizes. Gradients of a second backward are added to those that are there."""
    for number in range(4 * backwards):
        begin, first = STEP * number, 10 * number
        yield span("aten::randn", begin, 20, **{"Sequence number": first, "Fwd thread id": 0})
        for i, name in enumerate(["linear", "relu_", "mse_loss"]):
            yield span(f"aten::{name}", begin + 50 + 50 * i, 40, **{"Sequence number": first + i, "Fwd thread id": 0})
        yield span("aten::ones_like", begin + 200, 5)
        for i in range(3):
            yield span("autograd::engine::evaluate_function: XBackward0", begin + 210 + 40 * i, 30, **{"Sequence number": first + 2 - i, "Fwd thread id": 1})
        for i in range(GRADIENTS):
            yield span("autograd::engine::evaluate_function: torch::autograd::AccumulateGrad", begin + 330 + 30 * i, 28)
            yield span("torch::autograd::AccumulateGrad", begin + 332 + 30 * i, 24)
            yield span("aten::add_" if number % backwards else "aten::detach", begin + 334 + 30 * i, 20)
        if number % backwards == backwards - 1:
            for name, start, dims in update:
                yield span(f"aten::{name}", begin + start, 10, **{"Input Dims": dims} if dims else {})


EACH = [(name, start + 40 * i, None) for i in range(GRADIENTS) for name, start in (("mul", 500), ("sub_", 515), ("zero_", 530))]
LISTS = [("_foreach_mul", 500, None), ("_foreach_sub_", 515, [[[4], [], [2, 2]], [[4], [], [2, 2]], []]), ("_foreach_zero_", 530, [[[4], [], [2, 2]]])]


def second_step(trace):
    """Of the second step, from its begin on, in microseconds."""
    rows = trace.query("SELECT name, p.start_ns - s.start_ns, p.dur_ns, s.dur_ns FROM spans p JOIN (SELECT start_ns, dur_ns FROM spans "
                       "WHERE kind = 'step' ORDER BY start_ns LIMIT 1 OFFSET 1) s ON p.start_ns >= s.start_ns AND p.end_ns <= s.start_ns + s.dur_ns "
                       "WHERE p.kind = 'phase' ORDER BY p.start_ns")
    return [(name, *(int(value) // 1000 for value in values)) for name, *values in rows]


@pytest.mark.parametrize("update, begin, length", [(EACH, 515, 90), (LISTS, 515, 10), ([(*LISTS[1][:2], None)], 515, 10)])
def test_an_update_by_hand_is_the_phase_optimizer_and_ends_the_step(trace, update, begin, length):
    """One operator for each parameter, or one for all; what zeroes gradients behind it is no part of it. A list of unknown length may be all."""
    trace.write(list(by_hand(update)))
    start, end = begin + length, STEP  # of the step before, on the clock of the second one
    assert second_step(trace) == [("forward", STEP + 50 - start, 140, end), ("backward", STEP + 200 - start, 218, end), ("optimizer", STEP + begin - start, length, end)]
    assert len(trace.table("steps")) == 4


def test_an_evaluation_behind_an_update_by_hand_is_no_part_of_it(trace):
    """It writes in place, too, without a graph."""
    trace.write(list(by_hand([*EACH, ("conv2d", 700, None), ("relu_", 720, None), ("linear", 740, None), ("add_", 760, None)])))
    assert second_step(trace) == [("forward", 445, 140, STEP), ("backward", 595, 218, STEP), ("optimizer", 910, 90, STEP)]


def test_gradients_that_add_up_until_an_update_by_hand_are_one_step(trace):
    trace.write(list(by_hand(EACH, backwards=2)))
    assert [row["duration_ns"] for row in trace.table("steps")] == [(STEP + 605 - 50) * 1000, *[2 * STEP * 1000] * 3]
    assert [name for name, *_ in second_step(trace)] == ["forward", "backward", "forward", "backward", "optimizer"]


@pytest.mark.parametrize("update", [EACH[:6], [("_foreach_sub_", 515, [[[4], []], [[4], []], []])]])
def test_writes_to_fewer_tensors_than_have_gradients_are_no_update(trace, update):
    trace.write(list(by_hand(update)))
    assert second_step(trace) == [("forward", 632, 140, STEP), ("backward", 782, 218, STEP)]


def test_marked_steps_have_updates_by_hand(trace):
    trace.write([*by_hand(EACH), *(step(number, STEP * number) for number in range(4))])
    assert second_step(trace) == [("forward", 50, 140, STEP), ("backward", 200, 218, STEP), ("optimizer", 515, 90, STEP)]


def test_where_an_optimizer_is_called_nothing_else_is_the_update(trace):
    """Weights of an average, say, which are as many; nor is the second backward, whose call is missing, a step, because all its gradients are new."""
    calls = [span("Optimizer.step#SGD.step", STEP * number + 700, 50, "user_annotation") for number in (0, 2, 3)]
    trace.write([*by_hand(EACH), *calls])
    assert second_step(trace) == [(name, start + begin, length, 2 * STEP) for start in (0, STEP) for name, begin, length in
                                  (("forward", 300, 140), ("backward", 450, 218), ("optimizer", 950, 50)) if start or name != "optimizer"]


def compiled():
    """Three steps with torch.compile: the code has no number, what makes the nodes in it has."""
    regions = 2
    for number in range(3):
        begin, first = STEP * number, 10 * number
        yield step(number, begin)
        for i in range(regions):
            yield span(f"Torch-Compiled Region: {i}/0", begin + 50 + 150 * i, 140)
            yield span("CompiledFunction", begin + 60 + 150 * i, 120, **{"Sequence number": first + i, "Fwd thread id": 0})
            yield span("aten::addmm", begin + 70 + 150 * i, 100)
        yield span("aten::mse_loss", begin + 380, 20, **{"Sequence number": first + regions, "Fwd thread id": 0})
        for i in reversed(range(regions + 1)):
            node = {"Sequence number": first + i, "Fwd thread id": 1}
            yield span("autograd::engine::evaluate_function: XBackward0", begin + 550 - 50 * i, 40, **node)
            yield span("XBackward0", begin + 551 - 50 * i, 30, **node)
        yield span("Optimizer.step#SGD.step", begin + 600, 40, "user_annotation")


def test_compiled_code_is_forward_by_what_makes_nodes_in_it(trace):
    trace.write(list(compiled()))
    assert forwards(trace) == [(STEP * number + 50, 350) for number in range(3)]


def with_metrics(engine):
    """Four steps, as Kineto writes them: forward, backward on the engine's thread, optimizer, and then something of the outputs, with a graph. A number
    is that of the node that comes next. engine: what the nodes say of themselves."""
    for number in range(4):
        begin, first = STEP * number, 10 * number
        yield step(number, begin)
        for i, name in enumerate(["linear", "relu", "argmax", "mse_loss"]): # the third one makes no node that is used
            yield span(f"aten::{name}", begin + 100 * i, 80, **{"Sequence number": first + i, "Fwd thread id": 0})
        for i in (3, 1, 0):
            yield span("autograd::engine::evaluate_function: XBackward0", begin + 550 - 50 * i, 40, tid=2, **engine(first + i))
            yield span("XBackward0", begin + 551 - 50 * i, 30, tid=2, **engine(first + i))
        yield span("Optimizer.step#SGD.step", begin + 600, 40, "user_annotation")
        for i, name in enumerate(["softmax", "log", "item"]):
            yield span(f"aten::{name}", begin + 650 + 50 * i, 40, **{"Sequence number": first + 4 + i, "Fwd thread id": 0})


def forwards(trace):
    """When they begin and how long they are, in microseconds."""
    found = trace.query("SELECT start_ns / 1000, dur_ns / 1000 FROM spans WHERE kind = 'phase' AND name = 'forward' ORDER BY start_ns")
    return [tuple(map(int, row)) for row in found]


def test_what_is_computed_with_a_graph_that_no_backward_uses_is_no_forward(trace):
    """Metrics of outputs, behind the optimizer; what lies among the operators of a forward is a part of it."""
    trace.write(list(with_metrics(lambda number: {"Sequence number": number, "Fwd thread id": 1})))
    assert forwards(trace) == [(STEP * number, 380) for number in range(4)]


def test_where_nodes_do_not_say_their_numbers_all_that_makes_a_graph_is_forward(trace):
    trace.write(list(with_metrics(lambda number: {})))
    assert [start % STEP for start, _ in forwards(trace)] == [0, 650] * 4


def test_the_forward_before_the_end_of_a_file_that_is_cut_off_is_one(trace):
    """Its backward was in what is missing; in a file that is whole it has none."""
    events = list(with_metrics(lambda number: {"Sequence number": number, "Fwd thread id": 1}))
    events = [event for event in events if event["tid"] == 1 or event["ts"] < 3 * STEP]
    trace.write(events)
    assert [start for start, _ in forwards(trace)] == [STEP * number for number in range(3)]
    trace.path.write_text(trace.path.read_text().rstrip(" \n]}"))
    assert 3 * STEP in [start for start, _ in forwards(trace)]


def test_the_last_forward_of_a_trace_is_one(tmp_path):
    """Behind its last operator there is no higher number, but a node of a backward that has its own."""
    events = []
    for step in range(3):
        at, number = 1000 * step, 2 * step
        events += [{"cat": "user_annotation", "name": f"ProfilerStep#{step}", "ts": at, "dur": 900},
                   {"cat": "cpu_op", "name": "aten::mm", "ts": at + 10, "dur": 100, "args": {"Sequence number": number, "Fwd thread id": 0}},
                   {"cat": "cpu_op", "name": "aten::logsumexp", "ts": at + 110, "dur": 80, "args": {"Sequence number": number + 1, "Fwd thread id": 0}}]
        for k, node in enumerate(("LogsumexpBackward0", "MmBackward0")):
            events.append({"cat": "cpu_op", "name": f"autograd::engine::evaluate_function: {node}", "ts": at + 200 + 150 * k, "dur": 150,
                           "args": {"Sequence number": number + 1 - k, "Fwd thread id": 1}})
        events.append({"cat": "cpu_op", "name": "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad", "ts": at + 500, "dur": 10})
        events.append({"cat": "user_annotation", "name": "Optimizer.step#SGD.step", "ts": at + 600, "dur": 200})
    (tmp_path / "trace.json").write_text(json.dumps({"traceEvents": [{"ph": "X", "pid": 1, "tid": 1, **event} for event in events]}))
    done = subprocess.run([os.environ["STEPSCOPE"], "report", tmp_path / "trace.json", "--table", "steps", "--json"], capture_output=True, text=True,
                          timeout=60, check=True)
    assert [row["forward_ns"] for row in json.loads(done.stdout)["rows"]] == [180000] * 3
