# SPDX-License-Identifier: Apache-2.0
"""Recording without `stepscope run -- python`: auto(), the environment, `python -m stepscope`, notebooks; and what is said where we cannot
get in."""
import json
import os
import re
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from torch_tools import HERE, STEPSCOPE, environment, every_python, export, pythons, run, table

PACKAGE = Path(STEPSCOPE).resolve().parent.parent / "python"
STEPS = """
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    model(torch.ones(8, 4)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
"""
PYTHON = pythons()[-1].values[0] or sys.executable  # Debian's, or what there is


def python(tmp_path, interpreter, *program, **env):
    env = {"PYTHONPATH": PACKAGE, "PYTHONDONTWRITEBYTECODE": 1, **env}
    return subprocess.run([interpreter, *map(str, program)], cwd=tmp_path, env=environment(**env), capture_output=True, text=True,
                          timeout=180, check=False)


def recorded(tmp_path):
    """The one run directory that was made."""
    runs = [path for path in (tmp_path / "stepscope-runs").iterdir() if not path.is_symlink()]
    assert len(runs) == 1
    return runs[0]


def rows(directory, name):
    done = subprocess.run([STEPSCOPE, "report", directory, "--table", name, "--json"], env=environment(), capture_output=True,
                          text=True, check=True, timeout=60)
    return json.loads(done.stdout)["rows"]


@every_python
@pytest.mark.parametrize("order", ["import stepscope; stepscope.auto(); import torch", "import torch, stepscope; stepscope.auto()"])
def test_auto_records_and_says_where(tmp_path, python, order):
    (tmp_path / "train.py").write_text(order + STEPS)
    done = subprocess.run([python, "train.py"], cwd=tmp_path, capture_output=True, text=True, timeout=180, check=False,
                          env=environment(PYTHONPATH=PACKAGE))
    directory = recorded(tmp_path)
    first, last = done.stderr.splitlines()
    assert (done.returncode, done.stdout) == (0, "") and first == f"stepscope: recording into {directory}"
    assert last.endswith(f"see: stepscope report {directory}")
    assert len(rows(directory, "steps")) == 3


CHILDREN = """
import multiprocessing, os, subprocess, sys
import stepscope

def work():
    import torch
    torch.add(torch.ones(2), torch.ones(2))

if __name__ == "__main__":
    print(stepscope.auto("with=shapes"))
    for method in ("fork", "spawn", "forkserver"):
        process = multiprocessing.get_context(method).Process(target=work)
        process.start()
        process.join()
        assert process.exitcode == 0
    code = "import torch; torch.add(torch.ones(2), torch.ones(2))"
    subprocess.run([sys.executable, "-c", code], check=True)
    if os.fork() == 0:
        os.execv(sys.executable, [sys.executable, "-c", code])
    assert os.wait()[1] == 0
"""


@every_python
def test_children_of_auto_record_into_its_directory(tmp_path, python):
    (tmp_path / "train.py").write_text(CHILDREN)
    done = subprocess.run([python, "train.py"], cwd=tmp_path, capture_output=True, text=True, timeout=180, check=False,
                          env=environment(PYTHONPATH=PACKAGE))
    assert done.returncode == 0, done.stderr
    # children say nothing; Python 3.12 warns of a fork beside our thread
    assert len([line for line in done.stderr.splitlines() if "fork()" not in line]) == 2, done.stderr
    adds = [row for row in rows(recorded(tmp_path), "ops") if row["name"] == "aten::add"]
    assert adds[0]["calls"] >= 5


def test_auto_never_raises(tmp_path):
    for program, said in (("stepscope.auto('nonsense=1')", "nothing is recorded: "), ("stepscope.auto('out=/proc/none')",
                                                                                     "nothing is recorded: ")):
        done = python(tmp_path, PYTHON, "-c", f"import stepscope\nprint(repr({program}))")
        assert (done.returncode, done.stdout) == (0, "''\n")
        assert done.stderr.startswith("stepscope: " + said) and len(done.stderr.splitlines()) == 1
    done = python(tmp_path, PYTHON, "-c", "import stepscope; stepscope.auto()", STEPSCOPE="wiht=shapes")
    assert "unknown option 'wiht' (the variable STEPSCOPE)" in done.stderr
    done = python(tmp_path, PYTHON, "-c", "import stepscope; stepscope.auto()", STEPSCOPE="0")
    assert (done.stdout, done.stderr) == ("", "")


@pytest.mark.parametrize("wish", ["1", "with=shapes"])
def test_the_environment_asks_for_it(tmp_path, wish):
    """What an installed package's stepscope.pth does, run twice as some virtual environments do."""
    site = tmp_path / "site"
    site.mkdir()
    shutil.copy(PACKAGE / "stepscope" / "_hook.py", site / "_stepscope_hook.py")
    shutil.copy(HERE.parent.parent / "python" / "startup" / "stepscope.pth", site)
    (tmp_path / "train.py").write_text("import site\nfor _ in range(2):\n    site.addsitedir('site')\nimport torch" + STEPS)
    done = python(tmp_path, PYTHON, "train.py", STEPSCOPE=wish)
    assert done.returncode == 0 and len(done.stderr.splitlines()) == 2, done.stderr
    steps = rows(recorded(tmp_path), "steps")
    assert len(steps) == 3
    subprocess.run([STEPSCOPE, "export", recorded(tmp_path), "-o", tmp_path / "trace.json"], env=environment(), check=True, timeout=60)
    assert ('"Input Dims"' in (tmp_path / "trace.json").read_text()) == (wish == "with=shapes")
    again = python(tmp_path, PYTHON, "train.py", STEPSCOPE="0")
    assert again.stderr == "" and len(list((tmp_path / "stepscope-runs").iterdir())) == 2  # and the link to the latest


@every_python
@pytest.mark.parametrize("order", ["import stepscope; stepscope.init('out=run'); import torch",
                                   "import torch, stepscope; stepscope.init('out=run')"])
def test_init_observes_pytorch_too(tmp_path, python, order):
    (tmp_path / "train.py").write_text(order + STEPS)
    done = subprocess.run([python, "train.py"], cwd=tmp_path, capture_output=True, text=True, timeout=180, check=False,
                          env=environment(PYTHONPATH=PACKAGE))
    assert done.returncode == 0 and len(done.stderr.splitlines()) == 1, done.stderr
    assert len(rows(tmp_path / "run", "steps")) == 3


@every_python
def test_auto_again_after_shutdown(tmp_path, python):
    (tmp_path / "train.py").write_text(f"""
import torch, stepscope
for out, steps in (("one", 3), ("two", 3)):
    assert stepscope.auto(f"out={{out}}").endswith(out) and stepscope.is_recording()
    {STEPS.strip().replace(chr(10), chr(10) + "    ")}
    stepscope.shutdown()
""")
    done = subprocess.run([python, "train.py"], cwd=tmp_path, capture_output=True, text=True, timeout=180, check=False,
                          env=environment(PYTHONPATH=PACKAGE))
    assert done.returncode == 0, done.stderr
    assert [len(rows(tmp_path / out, "steps")) for out in ("one", "two")] == [3, 3]


@every_python
def test_python_m_stepscope(tmp_path, python):
    (tmp_path / "train.py").write_text("import sys, torch\nprint(sys.argv)" + STEPS)
    for way, argv in ((["train.py", "--with", "x"], "['train.py', '--with', 'x']"), (["-m", "train", "y"], "train.py', 'y']")):
        out = f"run{len(way)}{way[0]}"
        done = subprocess.run([python, "-m", "stepscope", "--with", "shapes", "-o", out, *way], cwd=tmp_path, capture_output=True,
                              text=True, timeout=180, check=False, env=environment(PYTHONPATH=PACKAGE))
        assert done.returncode == 0 and argv in done.stdout, done.stderr
        assert len(rows(tmp_path / out, "steps")) == 3


def test_python_m_stepscope_without_the_program(tmp_path):
    package = tmp_path / "package"
    shutil.copytree(PACKAGE, package)
    shutil.copy(PACKAGE.parent / "src" / "recorder" / "libstepscope.so.0", package / "stepscope")
    (tmp_path / "train.py").write_text("import sys, torch\nprint(__name__, sys.argv)" + STEPS)
    for way in (["train.py", "x"], ["-m", "train", "x"]):
        done = python(tmp_path, PYTHON, "-m", "stepscope", "--with", "shapes,memory", "--no-sample-process", "-o", "run" + way[0], *way,
                      PYTHONPATH=package)
        assert done.returncode == 0 and done.stdout.startswith("__main__ ["), done.stderr
        assert len(rows(tmp_path / ("run" + way[0]), "steps")) == 3


def test_python_m_stepscope_knows_which_options_take_a_value():
    sys.path.insert(0, str(PACKAGE))
    from stepscope.__main__ import FLAGS

    done = subprocess.run([STEPSCOPE, "run", "--help"], env=environment(), capture_output=True, text=True, check=True)
    flags = set(re.findall(r"^ {2,6}(?:-\w, +)?(--[a-z-]+)(?:  | *$)", done.stdout, re.M))
    assert flags == {flag for flag in FLAGS if flag.startswith("--")}


@pytest.mark.parametrize("flag", ["-I", "-E", "-S"])
def test_what_keeps_us_out_is_said_when_torch_was_there(tmp_path, flag):
    folder = subprocess.run([PYTHON, "-c", "import os, torch; print(os.path.dirname(os.path.dirname(torch.__file__)))"],
                            capture_output=True, text=True, check=True, timeout=300).stdout.strip()
    site = f"import sys; sys.path.append({folder!r})\n" if flag == "-S" else ""
    done = run(tmp_path, PYTHON, flag, "-c", site + "import torch, time; time.sleep(2.5)")
    said = [line for line in done.stderr.splitlines() if "unobserved" in line]
    assert len(said) == 1 and f"Python was started with {flag}; put `import stepscope; stepscope.auto()`" in said[0]
    assert "installed for that Python" in said[0] and "stepscope_step_begin()" not in done.stderr
    shown = subprocess.run([STEPSCOPE, "report", "run"], cwd=tmp_path, env=environment(), capture_output=True, text=True, check=True,
                           timeout=60).stdout
    assert said[0][len("stepscope: "):] in " ".join(shown.split()) and "stepscope_step_begin()" not in shown


@pytest.mark.parametrize("start", [["env", "-i"], ["env", "PYTHONPATH=src"], ["env", "-u", "PYTHONPATH"]], ids=" ".join)
def test_a_lost_environment_is_said(tmp_path, start):
    done = run(tmp_path, *start, PYTHON, "-c", "import torch, time; time.sleep(2.5)")
    said = [line for line in done.stderr.splitlines() if "unobserved" in line]
    assert len(said) == 1 and "its PYTHONPATH lacks the directory that `stepscope run` added" in said[0], done.stderr
    assert "stepscope_step_begin()" not in done.stderr


@every_python
@pytest.mark.parametrize("order", ["import os; os.environ.clear(); import torch", "import os, torch; os.environ.clear()"])
def test_a_script_that_empties_its_environment_is_recorded(tmp_path, python, order):
    (tmp_path / "train.py").write_text(order + STEPS)
    done = run(tmp_path, python, "train.py", options=["--with", "shapes"])
    assert done.returncode == 0 and "(3 were counted by the calls of optimizers)" in done.stderr, done.stderr
    assert len(table(tmp_path, "steps")) == 3 and any(row["shape"] for row in table(tmp_path, "ops", "--by", "shape"))
    assert len(done.stderr.splitlines()) == 2, "only `stepscope run` speaks"


KILLED = """
import ctypes, os, re, signal, time
ctypes.CDLL("./libtorch_cpu.so")

def read_by_launcher():
    with open(f"/proc/{os.getppid()}/io") as io:
        return int(re.search(r"rchar: ([0-9]+)", io.read())[1])

with open("/proc/self/maps") as maps:
    enough = read_by_launcher() + 6 * len(maps.read())
while read_by_launcher() < enough:  # it has looked at us
    time.sleep(0.02)
os.kill(os.getpid(), signal.SIGTERM)
"""


def test_a_process_that_ends_while_it_imports_is_named_so(tmp_path):
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text(KILLED)
    library = subprocess.run([PYTHON, "-c", "import _ctypes; print(_ctypes.__file__)"], capture_output=True, text=True, check=True).stdout
    shutil.copy(library.strip(), tmp_path / "libtorch_cpu.so")
    (tmp_path / "train.py").write_text("import torch")
    done = run(tmp_path, PYTHON, "train.py")
    assert done.returncode == 143 and "was still importing PyTorch at the last check: it is not recorded" in done.stderr, done.stderr
    assert "ran PyTorch" not in done.stderr and "stepscope_step_begin()" not in done.stderr


def test_another_pythonpath_in_front_is_no_lost_environment(tmp_path):
    done = run(tmp_path, "bash", "-c", f'PYTHONPATH=src:$PYTHONPATH exec {PYTHON} -c "import torch, time; time.sleep(2.5)"')
    assert "unobserved" not in done.stderr


FOLDER = """
import sys, torch, torch.nn
import stepscope.own
assert stepscope.own.ANSWER == 42 and stepscope.own is sys.modules["stepscope.own"]
"""


@every_python
@pytest.mark.parametrize("first", ["", "import stepscope.own\n"])
def test_a_folder_that_is_called_stepscope_hides_nothing_and_is_not_hidden(tmp_path, python, first):
    (tmp_path / "stepscope").mkdir()
    (tmp_path / "stepscope" / "own.py").write_text("ANSWER = 42\n")
    (tmp_path / "train.py").write_text(first + FOLDER + STEPS)
    done = run(tmp_path, python, "train.py")
    assert (done.returncode, "observe" in done.stderr) == (0, False), done.stderr
    assert len(table(tmp_path, "steps")) == 3


@every_python
def test_a_program_may_import_us_before_pytorch_where_we_are_not_installed(tmp_path, python):
    (tmp_path / "train.py").write_text("from stepscope import phase\nimport torch, stepscope" + STEPS + "with phase('optimizer'): print(stepscope.active() != 0)")
    done = run(tmp_path, python, "train.py")
    assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr
    assert len(table(tmp_path, "steps")) == 3


def test_a_module_that_is_called_stepscope_runs_once_and_keeps_us_out(tmp_path):
    (tmp_path / "stepscope.py").write_text("print('once')\nimport torch" + STEPS)
    (tmp_path / "train.py").write_text("import torch, stepscope")
    for script in ("stepscope.py", "train.py"):
        shutil.rmtree(tmp_path / "run", ignore_errors=True)
        done = run(tmp_path, PYTHON, script)
        assert (done.returncode, done.stdout) == (0, "once\n"), done.stderr
        assert f"another module called stepscope: {tmp_path}/stepscope.py" in done.stderr


def test_what_keeps_us_out_is_not_said_without_torch(tmp_path):
    done = run(tmp_path, PYTHON, "-I", "-c", "import time; time.sleep(2.5)")
    assert "unobserved" not in done.stderr


def test_auto_gets_in_where_the_launcher_cannot(tmp_path):
    program = f"import sys; sys.path.append({str(PACKAGE)!r})\nimport stepscope; stepscope.auto()\nimport torch, time{STEPS}time.sleep(2)"
    done = run(tmp_path, PYTHON, "-I", "-c", program)
    assert done.returncode == 0 and "unobserved" not in done.stderr and "recording into" not in done.stderr
    assert len(table(tmp_path, "steps")) == 3


def test_scripts_exec_and_virtual_environments(tmp_path):
    """A script with #! that becomes another program, which is a virtual environment's Python."""
    subprocess.run([PYTHON, "-m", "venv", "--without-pip", "--system-site-packages", tmp_path / "venv"], check=True, timeout=300)
    (tmp_path / "train.py").write_text("import torch" + STEPS)
    script, python = tmp_path / "start", str(tmp_path / "venv/bin/python")
    script.write_text(f"#!{PYTHON}\nimport os\nos.execv({python!r}, [{python!r}, 'train.py'])\n")
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    done = run(tmp_path, script)
    assert done.returncode == 0, done.stderr
    assert len(table(tmp_path, "steps")) == 3


def test_an_environment_as_conda_makes_it(tmp_path):
    """An interpreter of its own with its library beside it, no virtual environment; what is installed lies elsewhere."""
    where = subprocess.run([PYTHON, "-c", "import os, sys, sysconfig, torch\nprint(os.path.realpath(sys.executable), sysconfig.get_path('stdlib'), "
                            "os.path.dirname(os.path.dirname(torch.__file__)))"], capture_output=True, text=True, check=True, timeout=300).stdout
    interpreter, library, packages = where.split()
    for folder in ("bin", "lib", "conda-meta"):
        (tmp_path / "envs/train" / folder).mkdir(parents=True)
    python = tmp_path / "envs/train/bin/python"
    shutil.copy(interpreter, python)
    (tmp_path / "envs/train/lib" / Path(library).name).symlink_to(library)
    for shared in Path(interpreter).parent.parent.glob("lib/libpython*"):
        (tmp_path / "envs/train/lib" / shared.name).symlink_to(shared)
    (tmp_path / "train.py").write_text("import sys, torch" + STEPS + "print(sys.prefix)")
    done = run(tmp_path, python, "train.py", env={"PYTHONPATH": packages, "CONDA_PREFIX": tmp_path / "envs/train", "CONDA_DEFAULT_ENV": "train"})
    assert (done.returncode, done.stdout) == (0, f"{tmp_path / 'envs/train'}\n"), done.stderr
    assert len(table(tmp_path, "steps")) == 3


@pytest.mark.parametrize("launcher", ["torchrun", "accelerate", "deepspeed"])
def test_launchers_are_no_ranks(tmp_path, launcher):
    """They import PyTorch as well, and start the ranks as processes."""
    (tmp_path / "train.py").write_text("import torch" + STEPS)
    (tmp_path / launcher).write_text(f"""
import os, subprocess, sys, torch
torch.ones(2)
for rank in range(2):
    subprocess.run([{PYTHON!r}, "train.py"], check=True, env=dict(os.environ, RANK=str(rank), WORLD_SIZE="2"))
""")
    done = run(tmp_path, PYTHON, launcher)
    assert done.returncode == 0 and "unobserved" not in done.stderr, done.stderr
    assert sorted(row["rank"] for row in table(tmp_path, "processes") if row["role"] == "trainer") == [0, 1]


@every_python
def test_reloading_torchs_package_and_failing_imports(tmp_path, python):
    program = """
import importlib, importlib.util, sys
assert importlib.util.find_spec("torch").name == "torch"
import torch
spec, loader = torch.__spec__, torch.__loader__
assert torch.__spec__.loader is loader and importlib.util.find_spec("torch") is spec
assert not any("stepscope" in repr(finder) or "TorchFinder" in repr(finder) for finder in sys.meta_path)
try:
    import torch_that_is_not_there
except ModuleNotFoundError as problem:
    assert problem.name == "torch_that_is_not_there"
torch.ones(3)
"""
    done = run(tmp_path, python, "-c", program)
    assert done.returncode == 0, done.stderr
    assert [event for event in export(tmp_path) if event["name"] == "aten::ones"]  # looking for it before was no import


@every_python
def test_nothing_of_the_program_is_kept_alive(tmp_path, python):
    program = """
import gc, weakref, torch, stepscope
model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model(torch.ones(8, 4)).sum().backward()
optimizer.step()
references = [weakref.ref(model), weakref.ref(model[0]), weakref.ref(optimizer), weakref.ref(model[0].weight)]
stepscope.shutdown()
del model, optimizer
gc.collect()
print([reference() for reference in references])
"""
    done = run(tmp_path, python, "-c", program, env={"PYTHONPATH": PACKAGE})
    assert done.stdout == "[None, None, None, None]\n", done.stderr


NOTEBOOK = """
import os
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
shell.run_cell("import torch, os")
shell.run_line_magic("load_ext", "stepscope")
for n in range(2):
    shown = shell.run_cell_magic("stepscope", "with=shapes", '''%s''')
    print("aten::addmm" in repr(shown), os.path.isdir(shown.directory), shown.directory)
print(shell.run_cell_magic("stepscope", "", "1 / 0"))
print(shell.run_line_magic("stepscope", "out=whole"))
print(shell.run_line_magic("stepscope", "out=again"))
shell.run_cell('''%s''')
""" % (STEPS, STEPS)


@every_python
def test_notebooks(tmp_path, python):
    if subprocess.run([python, "-c", "import IPython"], capture_output=True, check=False, env=dict(os.environ)).returncode != 0:
        pytest.skip("no IPython for this Python")
    done = subprocess.run([python, "-c", NOTEBOOK], cwd=tmp_path, capture_output=True, text=True, timeout=180, check=False,
                          env=environment(PYTHONPATH=f"{PACKAGE}:{os.environ.get('PYTHONPATH', '')}"))
    lines = [line for line in done.stdout.splitlines() if line.startswith(("True", "False"))]
    assert len(lines) == 2 and all(line.startswith("True True ") for line in lines), done.stdout + done.stderr
    assert lines[0] != lines[1] and "ZeroDivisionError" in done.stdout
    assert len(rows(tmp_path / "whole", "steps")) == 3
    assert done.stderr.count("this session is already recorded, into ") == 1 and not (tmp_path / "again").exists()
