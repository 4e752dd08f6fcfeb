# SPDX-License-Identifier: Apache-2.0
"""Getting in: every way to start Python, and nothing of the program changed by it."""
import subprocess

import pytest

from torch_tools import STEPSCOPE, environment, every_python, run, table

TRAIN = """
import torch
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
torch.manual_seed(1)
for _ in range(3):
    loss = model(torch.randn(8, 4)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item().hex())
"""


FAILING = "def load():\n    raise OSError('libcudart.so.12: cannot open shared object file')\nload()\n"
FINDER = """
import sys
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "torch":
            raise RuntimeError("not here")
sys.meta_path.insert(%s, Finder())
import torch
"""
FAILING_IMPORTS = {"import": "import torch", "from": "from torch import nn", "function": "import importlib; importlib.import_module('torch')",
                   "finder": FINDER % 0, "behind": FINDER % 1}
AGAIN = """
import importlib.util, sys
try:
    import torch
except OSError:
    sys.path.remove(sys.path[0])
spec = importlib.util.find_spec("torch")
spec.loader = importlib.util.LazyLoader(spec.loader)
torch = sys.modules["torch"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(torch)
"""


def operators(tmp_path):
    return {row["name"]: row["calls"] for row in table(tmp_path, "ops")}


def plain(tmp_path, *program, **env):
    return subprocess.run(list(map(str, program)), cwd=tmp_path, env=environment(**env), capture_output=True, text=True,
                          timeout=300, check=False)


@every_python
def test_script_module_and_command(tmp_path, python):
    (tmp_path / "train.py").write_text(TRAIN)
    for program in (["train.py"], ["-m", "train"], ["-c", TRAIN]):
        done = run(tmp_path, python, *program, options=["--out", f"run{len(program)}{program[0]}"])
        assert done.returncode == 0, done.stderr
        assert "cannot" not in done.stderr
    steps = subprocess.run([STEPSCOPE, "report", "run2-m", "--table", "steps", "--csv"], cwd=tmp_path, env=environment(),
                           capture_output=True, text=True, check=True)
    assert len(steps.stdout.splitlines()) == 4


@every_python
def test_losses_are_the_same_to_the_bit(tmp_path, python):
    (tmp_path / "train.py").write_text("import torch\ntorch.manual_seed(0)\n" + TRAIN)
    threads = {"OMP_NUM_THREADS": 2}
    assert run(tmp_path, python, "train.py", env=threads).stdout == plain(tmp_path, python, "train.py", **threads).stdout


@every_python
def test_exceptions_and_exit_statuses_are_the_programs_own(tmp_path, python):
    (tmp_path / "fails.py").write_text("import torch\ndef f():\n    raise KeyError('x')\nf()\n")
    ours, theirs = run(tmp_path, python, "fails.py"), plain(tmp_path, python, "fails.py")
    assert ours.returncode == theirs.returncode == 1
    assert theirs.stderr in ours.stderr
    idle = run(tmp_path, python, "-c", "import torch, sys; sys.exit(3)", options=["--out", "b"])
    assert idle.returncode == 3
    assert "captured no operators: PyTorch ran none, and the program marked no steps" in idle.stderr
    assert run(tmp_path, python, "-c", "import torch, os; os._exit(4)", options=["--out", "c"]).returncode == 4


@every_python
def test_an_import_that_fails_looks_as_without_us(tmp_path, python):
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text(FAILING)
    for name, program in FAILING_IMPORTS.items():
        (tmp_path / f"{name}.py").write_text(program)
        ours, theirs = run(tmp_path, python, f"{name}.py", options=["--out", name]), plain(tmp_path, python, f"{name}.py")
        assert "".join(line for line in ours.stderr.splitlines(True) if not line.startswith("stepscope: ")) == theirs.stderr
        assert ours.returncode == theirs.returncode == 1
    (tmp_path / "again.py").write_text(AGAIN + TRAIN)
    done = run(tmp_path, python, "again.py")
    assert done.returncode == 0, done.stderr
    assert operators(tmp_path)["aten::linear"] == 3


@every_python
def test_threads_have_the_numbers_that_they_have_without_us(tmp_path, python):
    """Tracebacks and log lines of threads show them."""
    program = "import torch, threading\nthread = threading.Thread(target=print)\nprint(thread.name)"
    assert run(tmp_path, python, "-c", program).stdout == plain(tmp_path, python, "-c", program).stdout


@every_python
def test_the_users_own_sitecustomize_runs(tmp_path, python):
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "sitecustomize.py").write_text("print('mine', __name__, __file__.endswith('own/sitecustomize.py'))\n")
    program = "import sys, torch; print(sys.modules['sitecustomize'].__file__.endswith('own/sitecustomize.py'))"
    done = run(tmp_path, python, "-c", program, env={"PYTHONPATH": tmp_path / "own"})
    assert done.stdout.split("\n")[:2] == ["mine sitecustomize True", "True"], done.stderr


@every_python
def test_torch_is_imported_as_without_us(tmp_path, python):
    program = """
import importlib.util, sys
spec = importlib.util.find_spec("torch")
print(type(spec.loader).__name__)
import torch
print(type(torch.__spec__.loader).__name__, "exec_module" in vars(torch.__spec__.loader), len(sys.path), type(sys.meta_path[0]))
"""
    ours, theirs = run(tmp_path, python, "-c", program), plain(tmp_path, python, "-c", program)
    assert ours.stdout == theirs.stdout, ours.stderr


@every_python
@pytest.mark.parametrize("flag", ["-I", "-S", "-E", "-B"])
def test_flags_that_keep_us_out_leave_the_program_alone(tmp_path, python, flag):
    program = "import sys; sys.stdout.write('done'); sys.exit(5)"
    done = run(tmp_path, python, flag, "-c", program)
    assert (done.returncode, done.stdout) == (5, "done")


def test_a_broken_torch_fails_as_it_does_without_us(tmp_path):
    (tmp_path / "torch.py").write_text("raise ImportError('broken build')\n")
    done = run(tmp_path, "/usr/bin/python3", "-c", "import torch", env={"PYTHONPATH": tmp_path})
    assert done.returncode == 1
    assert "ImportError: broken build" in done.stderr
    assert "stepscope: cannot" not in done.stderr


def test_a_torch_that_is_something_else_is_said(tmp_path):
    (tmp_path / "torch.py").write_text("x = 1\n")
    done = run(tmp_path, "/usr/bin/python3", "-c", "import torch; print(torch.x)", env={"PYTHONPATH": tmp_path})
    assert done.returncode == 0 and done.stdout == "1\n"
    assert "stepscope: cannot observe PyTorch: " in done.stderr


def test_a_program_without_torch_pays_next_to_nothing(tmp_path):
    """No module of ours, and none that Python would not have loaded."""
    program = "import sys; print(sorted(name for name in sys.modules if 'stepscope' in name or name in ('ctypes', 'importlib.util')))"
    ours, theirs = run(tmp_path, "/usr/bin/python3", "-c", program), plain(tmp_path, "/usr/bin/python3", "-c", program)
    assert ours.stdout == theirs.stdout


@every_python
def test_children_record_into_files_of_their_own(tmp_path, python):
    (tmp_path / "train.py").write_text("""
import multiprocessing, torch

def work():
    torch.add(torch.ones(2), torch.ones(2))

if __name__ == "__main__":
    for method in ("fork", "spawn", "forkserver"):
        process = multiprocessing.get_context(method).Process(target=work)
        process.start()
        process.join()
        assert process.exitcode == 0
""")
    done = run(tmp_path, python, "train.py")
    assert done.returncode == 0, done.stderr
    assert operators(tmp_path)["aten::add"] >= 3
    assert len([row for row in table(tmp_path, "processes") if row["role"] != "host"]) >= 4


@every_python
def test_data_loader_workers(tmp_path, python):
    (tmp_path / "train.py").write_text("""
import torch
data = torch.utils.data.TensorDataset(torch.randn(64, 4))
for batch in torch.utils.data.DataLoader(data, batch_size=8, num_workers=2, multiprocessing_context="fork"):
    pass
""")
    done = run(tmp_path, python, "train.py")
    assert done.returncode == 0, done.stderr
    workers = [row for row in table(tmp_path, "processes") if row["role"] == "worker"]
    assert len(workers) == 2


@every_python
def test_what_was_asked_for_in_the_environment_stays(tmp_path, python):
    program = "import os; print(os.environ.get('PYTHONPATH', '').split(':')[1:])"
    assert run(tmp_path, python, "-c", program, env={"PYTHONPATH": "/a:/b"}).stdout == "['/a', '/b']\n"


SITES = {
    "an exit": "raise SystemExit(3)",
    "an exit with a text": "import sys\ndef leave():\n    sys.exit('not here')\nleave()",
    "a Ctrl-C": "raise KeyboardInterrupt",
    "an exception": "raise ValueError('mine')",
    "a module that is missing": "import nothing_of_this_name",
    "no Python": "this is none",
    "an end": "import os; os._exit(7)",
    "none": None,
}


@pytest.mark.parametrize("name", ["sitecustomize", "usercustomize"])
@pytest.mark.parametrize("site", SITES)
def test_what_a_sitecustomize_raises_looks_as_without_us(tmp_path, site, name):
    (tmp_path / "own").mkdir()
    if SITES[site]:
        (tmp_path / "own" / f"{name}.py").write_text(SITES[site] + "\n")
    program = "import sys; print('sitecustomize' in sys.modules, [entry for entry in sys.path if 'own' in entry])"
    env = {"PYTHONPATH": tmp_path / "own", "PYTHONDONTWRITEBYTECODE": "1"}
    ours, theirs = run(tmp_path, "/usr/bin/python3", "-c", program, env=env), plain(tmp_path, "/usr/bin/python3", "-c", program, **env)
    assert (ours.returncode, ours.stdout) == (theirs.returncode, theirs.stdout)
    assert "".join(line for line in ours.stderr.splitlines(True) if not line.startswith("stepscope: ")) == theirs.stderr
    if name == "sitecustomize" and site.startswith(("an exit", "a Ctrl-C")):
        assert theirs.returncode == 1 and f"own/{name}.py" in theirs.stderr


BY_HAND = """
import importlib.machinery, importlib.util, sys
rest = [entry for entry in sys.path if entry != __file__.rpartition("/")[0]]
spec = importlib.machinery.PathFinder.find_spec("sitecustomize", rest)
spec.loader.exec_module(importlib.util.module_from_spec(spec))
print("by hand")
"""


def test_a_sitecustomize_that_runs_the_next_by_hand(tmp_path):
    (tmp_path / "first").mkdir()
    (tmp_path / "own").mkdir()
    (tmp_path / "first" / "sitecustomize.py").write_text(BY_HAND)
    (tmp_path / "own" / "sitecustomize.py").write_text("print('mine')\n")
    program = ["/usr/bin/python3", "-c", "print('program')"]
    done = run(tmp_path, "sh", "-c", f"PYTHONPATH={tmp_path}/first:$PYTHONPATH exec \"$@\"", "sh", *program, env={"PYTHONPATH": tmp_path / "own"})
    assert (done.returncode, done.stdout) == (0, "mine\nby hand\nprogram\n"), done.stderr
    done = run(tmp_path, "sh", "-c", f"PYTHONPATH={tmp_path}/first:$PYTHONPATH exec \"$@\"", "sh", *program, options=["--out", "none"])
    assert (done.returncode, done.stdout) == (0, "by hand\nprogram\n"), done.stderr
