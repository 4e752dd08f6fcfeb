# SPDX-License-Identifier: Apache-2.0
"""The extension: what a program marks is in the recording, wrong calls fail as in any Python library, and without a recording
nothing happens."""
import ast
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from python_tools import PACKAGE, STEPSCOPE, environment, events, every_interpreter, plain, run, spans, table

MARKS = """
import stepscope
stepscope.metadata("model", "tiny")
stepscope.thread_name("trainer")

@stepscope.range("decorated")
def double(x, by=2):
    "doubles"
    return x * by

for n in (7, 8):
    with stepscope.step(n, tokens=100, samples=4):
        with stepscope.phase("forward"):
            with stepscope.range("outer"), stepscope.range("inner"):
                assert double(4, by=3) == 12 and double.__doc__ == "doubles"
        with stepscope.micro_batch(0):
            stepscope.push("pushed")
            stepscope.pop()
        stepscope.metric("loss", 0.5)
        stepscope.counter("queue", 3)
        stepscope.memory_alloc(4096, 100, "parameter")
        stepscope.memory_free(4096)
    stepscope.mark("done")
try:
    with stepscope.range("fails"):
        raise KeyError("mine")
except KeyError as problem:
    assert problem.args == ("mine",)
print(stepscope.is_recording(), stepscope.active())
stepscope.shutdown()
with stepscope.range("late"), stepscope.step(9):
    stepscope.mark("late")
print(stepscope.is_recording(), stepscope.active())
"""


@every_interpreter
def test_what_is_marked_is_recorded(tmp_path, python):
    done = run(tmp_path, python, "-c", MARKS, options=["--with", "memory"])
    assert (done.returncode, done.stdout) == (0, "True 11\nFalse 0\n"), done.stderr
    once = ["stepscope::forward", "outer", "inner", "decorated", "micro-batch", "pushed"]
    assert spans(tmp_path) == once * 2 + ["fails"]
    steps = table(tmp_path, "steps")
    assert [(row["step"], row["tokens"]) for row in steps] == [(7, 100), (8, 100)]
    names = {event["name"] for event in events(tmp_path)}
    assert {"loss", "queue", "done"} <= names and "late" not in names


REFUSED = """
import stepscope
with stepscope.step(tokens=8):
    for given in ({"tokens": 1.5}, {"samples": "x"}, {"tokens": 1, "samples": -1}):
        try:
            stepscope.step(**given)
            print("taken", given)
        except (TypeError, OverflowError):
            pass
with stepscope.step(samples=4):
    pass
"""


def test_a_step_that_is_refused_does_not_begin(tmp_path):
    done = run(tmp_path, sys.executable, "-c", REFUSED)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert [(row["step"], row["tokens"], row["is_complete"]) for row in table(tmp_path, "steps")] == [(0, 8, True), (1, None, True)]


CALLS = """
import stepscope
wrong = {
    "range": [(), (1,), (None,), (b"x",), ("a", "b")], "phase": [(), (1,)], "push": [(2,)], "pop": [(1,)], "mark": [(3.0,)],
    "micro_batch": [("x",)], "counter": [("x",), (1, 2), ("x", 1, 2)], "metric": [(None, 1)], "metadata": [("x",), ("x", 1)],
    "step_begin": [(), ("x",), (1, 1.5), (1, 1, "x"), (1, 1, 1, 1)], "step_count": [("x",), (1, 2, 3)], "init": [(1,)],
    "memory_alloc": [(1,), ("x", 1), (1, 1, 2)], "memory_free": [()], "thread_name": [(1,)],
}
for name, calls in wrong.items():
    for arguments in calls:
        try:
            getattr(stepscope, name)(*arguments)
        except TypeError:
            continue
        print("no TypeError", name, arguments)
for call in (lambda: stepscope.phase("forwards"), lambda: stepscope.memory_alloc(1, 1, "weights")):
    try:
        call()
        print("no ValueError")
    except ValueError as problem:
        assert "forward" in str(problem) or "parameter" in str(problem)
for arguments in ((-1, 1), (1 << 64, 1), (1, -5), (1, 1 << 63)):
    try:
        stepscope.memory_alloc(*arguments)
        print("no OverflowError", arguments)
    except OverflowError:
        pass
for runs_in_pieces in ("async def f(): pass", "def f(): yield", "f = 3"):
    exec(runs_in_pieces)
    try:
        stepscope.range("x")(f)
        print("decorated", runs_in_pieces)
    except TypeError:
        pass
class Value:
    def __float__(self):
        raise OverflowError("mine")
try:
    stepscope.metric("x", Value())
    print("not converted")
except OverflowError:
    print("converted")
"""


@every_interpreter
def test_wrong_calls_fail_with_and_without_a_recording(tmp_path, python):
    assert plain(tmp_path, python, "-c", CALLS).stdout == "not converted\n"
    assert run(tmp_path, python, "-c", CALLS).stdout == "converted\n"


@every_interpreter
def test_a_program_that_is_not_recorded_runs_as_it_is(tmp_path, python):
    done = plain(tmp_path, python, "-c", MARKS)
    assert (done.returncode, done.stdout, done.stderr) == (0, "False 0\nFalse 0\n", "")
    assert list(tmp_path.iterdir()) == []


NAMES = """
import threading
import stepscope
def work():
    for n in range(5000):
        with stepscope.range(f"name {n}"), stepscope.range("\\u00e9\\ud800"):
            pass
threads = [threading.Thread(target=work) for _ in range(3)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""


@every_interpreter
def test_names_of_all_kinds_from_several_threads(tmp_path, python):
    done = run(tmp_path, python, "-c", NAMES)
    assert done.returncode == 0, done.stderr
    found = spans(tmp_path)
    assert found.count("name 4999") == 3 and found.count("name 0") == 3
    assert found.count("\u00e9\\ud800") == 15000


ODD = r"""
import stepscope
stepscope.metadata("cwd \udcff", "/data/caf\udce9")
stepscope.metadata("cut\0here", "value\0behind")
stepscope.metadata("long", "\u20ac" * 70000)
stepscope.thread_name("loader \udcff")
with stepscope.range("x\0y"), stepscope.range("\u20ac" * 70000):
    pass
"""


@every_interpreter
def test_texts_that_are_no_utf8_are_taken_as_they_come(tmp_path, python):
    done = run(tmp_path, python, "-c", ODD)
    assert (done.returncode, done.stderr.count("Error")) == (0, 0), done.stderr
    facts = {row["key"]: row["value"] for row in table(tmp_path, "facts")}
    assert facts["cwd \\udcff"] == "/data/caf\\udce9" and facts["cut"] == "value"
    assert set(facts["long"]) == {"\u20ac"}
    assert {"".join(sorted(set(name))) for name in spans(tmp_path)} == {"x", "\u20ac"}


SUBINTERPRETERS = """
import stepscope
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
inner = '''
try:
    import stepscope
    with stepscope.range("inner"), stepscope.phase("data"):
        stepscope.metadata("inner", "yes")
        stepscope.mark("inner")
except ImportError:
    pass # where an interpreter of its own takes no such extension
'''
for _ in range(3):
    one = interpreters.create()
    with stepscope.range("around"):
        interpreters.run_string(one, inner)
    interpreters.destroy(one)
with stepscope.range("behind"), stepscope.phase("forward"):
    stepscope.metadata("behind", "yes")
print("done")
"""


@every_interpreter
def test_interpreters_within_the_interpreter_break_nothing(tmp_path, python):
    done = run(tmp_path, python, "-c", SUBINTERPRETERS)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
    found = [name for name in spans(tmp_path) if name in ("around", "behind")]
    assert found == ["around"] * 3 + ["behind"]


CUT_OFF = """
import os, threading
import stepscope
never = threading.Event()
def forever():
    while True:
        with stepscope.range("thread"), stepscope.range("inside"):
            never.wait(0.001)
for _ in range(4):
    threading.Thread(target=forever, daemon=True).start()
with stepscope.range("outer"):
    for _ in range(20):
        child = os.fork()
        if not child: # in the middle of ranges of its own and of other threads
            with stepscope.range("child"):
                pass
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
print("done")
"""


@every_interpreter
def test_threads_that_are_cut_off_and_forks_among_them(tmp_path, python):
    done = run(tmp_path, python, "-W", "ignore", "-c", CUT_OFF)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
    assert spans(tmp_path).count("child") == 20


def rows(tmp_path):
    query = "SELECT span, parent, name, dur_ns FROM spans WHERE kind = 'range' ORDER BY start_ns, span"
    done = subprocess.run([STEPSCOPE, "query", "run", "--json", query], cwd=tmp_path, env=environment(), capture_output=True, text=True,
                          timeout=60, check=True)
    return json.loads(done.stdout)["rows"]


COROUTINES = """
import asyncio, sys, time
import stepscope
async def work(name, opened, gate):
    with stepscope.range(name) if sys.argv[1] == "now" else kept.pop():
        opened.set()
        await gate.wait()
        time.sleep(0.02)
async def main(names):
    opened, gates = ([asyncio.Event() for _ in names] for _ in "12")
    tasks = []
    for name, one, gate in zip(names, opened, gates):
        tasks.append(asyncio.ensure_future(work(name, one, gate)))
        await one.wait()
    for task, gate in zip(tasks, gates): # the one that began first ends first
        gate.set()
        await task
        with stepscope.range("between"):
            pass
kept = [stepscope.range(name) for name in sys.argv[:1:-1]]
asyncio.run(main(sys.argv[2:]))
"""


@pytest.mark.parametrize("made", ["now", "before"])
@pytest.mark.parametrize("names", [["one", "two", "three"], ["same", "same", "same"]], ids=["names", "one_name"])
@every_interpreter
def test_ranges_of_coroutines_have_their_own_ends(tmp_path, python, names, made):
    done = run(tmp_path, python, "-c", COROUTINES, made, *names)
    assert done.returncode == 0, done.stderr
    *works, first, second, third = rows(tmp_path)
    assert [row["name"] for row in works] == names and [row["parent"] for row in works] == [None] * 3
    last = works[2]["span"]  # the others are shown up to where the next one began
    assert works[2]["dur_ns"] >= 60e6 and [row["parent"] for row in (first, second, third)] == [last, last, None]
    assert "open" not in {row["what"] for row in table(tmp_path, "ledger")}


ELSEWHERE = """
import threading, time
import stepscope
handed, over = threading.Event(), threading.Event()
moved, shared = stepscope.range("moved"), stepscope.range("shared")
def first():
    moved.__enter__()
    with shared:
        handed.set()
        over.wait()
        with stepscope.range("behind"):
            pass
thread = threading.Thread(target=first)
thread.start()
handed.wait()
with shared: # one object, in two threads
    time.sleep(0.02)
    moved.__exit__(None, None, None)
with stepscope.range("alone"):
    over.set()
    thread.join()
"""


@every_interpreter
def test_a_range_may_end_in_another_thread(tmp_path, python):
    done = run(tmp_path, python, "-c", ELSEWHERE)
    assert done.returncode == 0, done.stderr
    moved, *shared, alone, behind = sorted(rows(tmp_path), key=lambda row: ["moved", "shared", "alone", "behind"].index(row["name"]))
    assert [row["parent"] for row in (moved, *shared, alone)] == [None] * 4 and behind["parent"] in [row["span"] for row in shared]
    assert "open" not in {row["what"] for row in table(tmp_path, "ledger")}


LOST = """
import stepscope
for n in range(600):
    stepscope.range("lost").__enter__()
    stepscope.range("lost %d" % (n % 7)).__enter__()
for n in range(600):
    with stepscope.range("kept"):
        pass
"""


def test_ranges_that_are_never_ended_do_not_pile_up(tmp_path):
    """More than 256 that are open in a thread would leave no room for operators."""
    done = run(tmp_path, sys.executable, "-c", LOST)
    assert done.returncode == 0 and "dropped" not in done.stderr, done.stderr
    names = [row["name"] for row in rows(tmp_path)]
    assert names.count("lost") == names.count("kept") == 600


def test_importing_is_light(tmp_path):
    program = "import sys, types; before = set(sys.modules); import stepscope; print(sorted(set(sys.modules) - before))"
    for python in ("/usr/bin/python3",):
        assert plain(tmp_path, python, "-c", program).stdout == "['stepscope', 'stepscope._native']\n"


def test_without_the_extension_marks_do_nothing_and_the_reason_is_known(tmp_path):
    package = tmp_path / "package"
    shutil.copytree(PACKAGE, package)
    (package / "stepscope" / "_native.abi3.so").write_text("not an extension")
    done = plain(tmp_path, "/usr/bin/python3", "-c", MARKS, PYTHONPATH=package)
    assert (done.returncode, done.stdout, done.stderr) == (0, "False 0\nFalse 0\n", "")
    program = "import stepscope\nprint(stepscope.unavailable)\ntry: stepscope.init('out=x')\nexcept RuntimeError as e: print(e)"
    first, second = plain(tmp_path, "/usr/bin/python3", "-c", program, PYTHONPATH=package).stdout.splitlines()
    assert first == second and first.startswith("the extension for Python 3.") and "_native" in first


def free_threaded():
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    places = [os.environ.get("FREE_PYTHON"), *map(shutil.which, ("python3.13t", "python3.14t")), *pyenv.glob("*t/bin/python3")]
    return [str(place) for place in places if place]


@pytest.mark.skipif(not free_threaded(), reason="no free-threaded Python here, nor in FREE_PYTHON")
def test_a_free_threaded_python_goes_on_without_us(tmp_path):
    """It takes our file for one of its own."""
    python = free_threaded()[0]
    program = "import stepscope\nprint(stepscope.unavailable)\nwith stepscope.range('x'): print('runs')\nprint(repr(stepscope.auto()))"
    done = plain(tmp_path, python, "-c", program)
    reason, *rest = done.stdout.splitlines()
    assert (done.returncode, rest) == (0, ["runs", "''"]) and "this Python is free-threaded" in reason
    assert [line for line in done.stderr.splitlines() if "stepscope" in line] == [f"stepscope: nothing is recorded: {reason}"]


def test_a_library_of_another_version_is_refused(tmp_path):
    library = tmp_path / "libstepscope.so.0"
    (tmp_path / "old.c").write_text("unsigned stepscope_active;\n")
    subprocess.run(["gcc", "-shared", "-fPIC", "-Wl,-soname,libstepscope.so.0", "-o", library, tmp_path / "old.c"], check=True,
                   env=environment(), timeout=60)
    done = plain(tmp_path, "/usr/bin/python3", "-c", "import stepscope; print(stepscope.unavailable)", STEPSCOPE_LIBRARY=library)
    assert "has another version than this Python package: it has no stepscope_init" in done.stdout


OBJECTS = """
import copy, gc, pickle
import stepscope
from stepscope import _native
for span in (stepscope.range("x"), stepscope.phase("forward"), stepscope.micro_batch(3)):
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        again = pickle.loads(pickle.dumps(span, protocol))
        with again: pass
        assert {repr(one) for one in (again, copy.copy(span), copy.deepcopy([span])[0])} == {repr(span)}
for made in (stepscope.range("x"), _native.around(len)):
    for make in (type(made), lambda: object.__new__(type(made))):
        try:
            make()
            print("made without content")
        except TypeError:
            pass
def notice():
    print("notice")
    if not done:
        done.append(1)
        raise KeyboardInterrupt
    return True
done = []
_native.garbage_notice(notice)
gc.callbacks[:] = [_native.garbage_callback]
try:
    gc.collect()
    for _ in range(1000): pass
    print("lost")
except KeyboardInterrupt:
    print("interrupted")
gc.collect(); gc.collect()
"""


@every_interpreter
def test_objects_are_copied_and_not_made_and_an_interrupt_in_a_collection_is_kept(tmp_path, python):
    done = plain(tmp_path, python, "-c", OBJECTS)
    assert (done.returncode, done.stdout, done.stderr) == (0, "notice\ninterrupted\nnotice\n", "")


NUMBERS = """
import stepscope
for number in (-3, -2, 0, 1, 2, 0, 1, 1):
    with stepscope.step(number):
        pass
"""


@every_interpreter
def test_numbers_of_steps_that_say_little_are_said(tmp_path, python):
    done = run(tmp_path, python, "-c", NUMBERS)
    assert done.returncode == 0, done.stderr
    said = {row["sentence"].partition(":")[0]: row["count"] for row in table(tmp_path, "ledger")}
    assert said["the program gave steps a number below 0"] == 2
    assert said["the program gave steps a number that is not above the one before"] == 2


TWO_LOOPS = """
import stepscope, threading
def inner(n):
    with stepscope.step(n):
        pass
for n in range(0, 6, 2):
    with stepscope.step(n):
        other = threading.Thread(target=inner, args=(n + 1,))
        other.start()
        other.join()
"""


@every_interpreter
def test_steps_of_two_threads_are_said_to_be_of_one_process(tmp_path, python):
    done = run(tmp_path, python, "-c", TWO_LOOPS)
    assert done.returncode == 0, done.stderr
    said = [row["count"] for row in table(tmp_path, "ledger") if "A process has one step at a time, in one thread" in row["sentence"]]
    assert sum(said) == 3
    assert [row["step"] for row in table(tmp_path, "steps") if row["is_complete"]] == [1, 3, 5]


USES = """
import threading, time, stepscope
def work():
    end = time.thread_time() + 0.03
    while time.thread_time() < end:
        pass
for n in range(2):
    with stepscope.step(n):
        work()
with stepscope.step(2):
    work()
    time.sleep(0.03)
stepscope.step_begin(3)
other = threading.Thread(target=stepscope.step_end)
other.start()
other.join()
"""


def test_long_steps_have_the_cpu_time_of_their_thread(tmp_path):
    """Waits are not known of the first, as nothing says how long it will be, and nothing of one that another thread ends."""
    done = run(tmp_path, sys.executable, "-c", USES)
    assert done.returncode == 0, done.stderr
    steps = table(tmp_path, "steps")
    assert [row["step"] for row in steps][:3] == [0, 1, 2]
    assert steps[0]["waits"] is None
    assert all(30e6 <= row["cpu_ns"] <= row["duration_ns"] for row in steps[:3])
    assert steps[2]["waits"] > 0 and steps[2]["cpu_ns"] <= steps[2]["duration_ns"] - 30e6
    assert all(row["cpu_ns"] is None for row in steps[3:])


def declared(path):
    """Names of a module with their parameters, of a class with its methods': what a type checker and what Python finds."""
    def parts(body, place=""):
        for node in body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                yield f"{place}{node.name}", None
                yield from parts(node.body, f"{node.name}.")
            elif isinstance(node, ast.FunctionDef) and (not node.name.startswith("_") or node.name == "__init__"):
                given = node.args
                yield f"{place}{node.name}", ([each.arg for each in given.args + given.kwonlyargs], len(given.defaults), len(given.kw_defaults))
    return dict(parts(ast.parse(path.read_text()).body))


@pytest.mark.parametrize("name", ["__init__", "arguments", "profiler"])
def test_types_are_declared_of_what_is_there(name):
    there, said = declared(PACKAGE / f"stepscope/{name}.py"), declared(PACKAGE / f"stepscope/{name}.pyi")
    for theirs in ("ExecutionTraceObserver", "kineto_available"):
        there.pop(theirs, None), said.pop(theirs, None)
    if name == "arguments":  # a profiler to a type checker: each method of one must be there
        nothing = (PACKAGE / "stepscope/_nothing.py").read_text()
        methods = [key.split(".")[1] for key in declared(PACKAGE / "stepscope/profiler.pyi") if key.startswith("profile.")]
        assert not [method for method in methods if not re.search(rf"\b{method}\b", nothing) and method != "__init__"]
        for key in [key for key in {**there, **said} if key.split(".")[0] == "Nothing"]:
            there.pop(key, None), said.pop(key, None)
    assert said == there


def test_types_are_declared_of_all_names(tmp_path):
    text = (PACKAGE / "stepscope/__init__.pyi").read_text()
    names = plain(tmp_path, sys.executable, "-c", "import stepscope; print(*stepscope.__all__, *stepscope._ELSEWHERE, 'range')").stdout.split()
    assert len(names) > 30 and not [name for name in names if not re.search(rf"\b{name} as {name}\b|^(def|class) {name}\b|^{name}:", text, re.MULTILINE)]


@every_interpreter
def test_the_extension_compiles_without_a_warning(python):
    headers = subprocess.run([python, "-c", "import sysconfig; print(sysconfig.get_paths()['include'])"], capture_output=True, text=True,
                             check=True).stdout.strip()
    if not os.path.exists(f"{headers}/Python.h"):
        pytest.skip(f"{python} has no Python.h")
    build = PACKAGE.parent
    for unit in json.loads((build / "compile_commands.json").read_text()):
        if "_native.abi3.so.p" in unit["output"] and "agents/python" in unit["file"]:
            words = [word for word in shlex.split(unit["command"]) if not word.startswith("-isystem")]
            done = subprocess.run([*words[:words.index("-MD")], "-Werror", f"-isystem{headers}", "-fsyntax-only", unit["file"]],
                                  cwd=unit["directory"], capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
