# SPDX-License-Identifier: Apache-2.0
"""Calls seen through a function's vectorcall, on classes of the test's own: every way to call, exceptions, modules that come and go."""
from python_tools import every_interpreter, plain, run, spans

PROGRAM = """
import copy, gc, pickle, sys, threading, traceback, weakref
import stepscope
from stepscope import _modules, _native

class Module:
    def __init__(self, **parts):
        self._modules = parts
        self.__dict__.update(parts)
    def __call__(self, *arguments, **keywords):
        return self.forward(*arguments, **keywords)
    def train(self):
        pass
    def forward(self, x, fail=False):
        for part in self._modules.values():
            x = part(x, fail=fail)
        if fail and not self._modules:
            raise ValueError("mine")
        return x + 1
class Leaf(Module): pass
class Model(Module): pass

class torch:
    class nn: pass
torch.nn.Module = Module
code, function = Module.__call__.__code__, Module.__call__
model = Model(first=Leaf(), body=Model(second=Leaf()))
def show(fail=False):
    try:
        print(model(1, fail=fail))
    except ValueError as problem:
        print(problem, [entry.name for entry in traceback.extract_tb(problem.__traceback__)])
show(); show(True)
print(_modules.watch(torch, _native))
assert Module.__call__ is function and function.__code__ is code
show(); show(True)
class Caller(Model):
    def __call__(self, *arguments):
        return super().__call__(*arguments)
other = pickle.loads(pickle.dumps(copy.deepcopy(model)))
assert not any("stepscope" in name for name in vars(model))
print(model.__call__(1), Module.__call__(model, 1), other(1), Caller()(1))
for n in range(3000):  # addresses are given out again
    Leaf()(n)
references = [weakref.ref(model), weakref.ref(model.first)]
del model, other
gc.collect()
print([reference() for reference in references])
def work():
    mine = Model(part=Leaf())
    for n in range(200):
        mine(n)
threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
stepscope.shutdown()
print(Leaf()(1))
"""


@every_interpreter
def test_calls_are_seen_and_nothing_else_changes(tmp_path, python):
    (tmp_path / "program.py").write_text(PROGRAM)
    done = run(tmp_path, python, "program.py")
    lines = done.stdout.splitlines()
    assert done.returncode == 0, done.stderr
    assert lines[2] == "yes" and lines[0:2] == lines[3:5], "results and tracebacks are the same with us"
    assert lines[5:] == ["5 5 5 2", "[None, None]", "2"]
    found = spans(tmp_path)
    call = ["nn.Module: Model", "nn.Module: first", "nn.Module: body", "nn.Module: body.second"]
    assert found[:6] == call + call[:2], "all parts of a call, and of one that its first part ended"
    assert found.count("nn.Module: part") + sum(name.endswith(".part") for name in found) >= 800
    assert sum(name.startswith("nn.Module: Leaf") for name in found) == 3000
    assert plain(tmp_path, python, "program.py").stdout == done.stdout


FAILURES = """
import functools, weakref
from stepscope import _native

class Module:
    def __init__(self, problem=None):
        self.problem = problem
    def __call__(self, forget=None):
        if forget:
            reference = weakref.ref(self)
            del self
            forget()
            Module()()
            print("root lives", reference() is not None)
    def train(self):
        pass

asked, roots = [], []
def name_of(module, root):
    asked.append(module.problem)
    roots.append(root)
    if module.problem:
        raise module.problem
    _native.name_module(module, "M")
assert _native.watch_modules(Module.__call__, name_of, Module.train)

for problem in (KeyboardInterrupt, SystemExit, ValueError):
    module = Module(problem)
    for _ in range(2):
        try:
            module()
        except BaseException as got:
            print(type(got).__name__)
    print(problem.__name__, asked.count(problem))
partial = functools.partial(Module())
partial(lambda: partial.__setstate__((len, (), {}, {})))
print(type(roots[-1]).__name__)
many = [Module() for _ in range(132000)]
known = Module()
known()
for module in many:
    _native.name_module(module, None)
asked.clear()
for module in (Module(), Module()):
    module(); module()
known()
print("full", len(asked))
"""


@every_interpreter
def test_what_goes_wrong_with_names(tmp_path, python):
    done = run(tmp_path, python, "-c", FAILURES)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["KeyboardInterrupt", "KeyboardInterrupt", "KeyboardInterrupt 2", "SystemExit", "SystemExit",
                                        "SystemExit 2", "ValueError 1", "root lives True", "Module", "full 0"]
    assert spans(tmp_path) == ["nn.Module: M"] * 4, "of the partial, in it, and of the one known before the table was full"
