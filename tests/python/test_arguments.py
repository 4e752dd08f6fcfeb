# SPDX-License-Identifier: Apache-2.0
"""add_arguments(), from_args() and from_yaml(): every spelling of the guides gives the same settings."""
import subprocess

import pytest
from python_tools import PACKAGE, PYTHONS, environment

DEBIANS = "/usr/bin/python3"  # PyYAML comes with its PyTorch
PROGRAM = """
import argparse, copy, sys
import stepscope

def settings(style, *words, **more):
    parser = argparse.ArgumentParser()
    stepscope.add_arguments(parser, style)
    found = vars(stepscope.from_args(parser.parse_args(words), **more))
    return {key: found[key] for key in sorted(found)}

def refused(style, *words):
    try:
        settings(style, *words)
    except SystemExit as end:
        return end.code == 2
    except ValueError as problem:
        return str(problem)
    return False

off = settings("hf")
assert (off["enabled"], off["wait"], off["warmup"], off["active"], off["repeat"], off["memory_log_steps"]) == (False, 5, 2, 3, 1, 0)
assert off["output_dir"] == "./profiler_traces" and off["with_stack"] and off["record_shapes"] and off["profile_memory"]
on = settings("hf", "--enable-profiling", "--profiler-wait-steps", "10", "--enable-memory-logging")
assert on == settings("hf", "--enable_profiling", "true", "--profiler_wait_steps=10", "--enable_memory_logging=True")
assert on["enabled"] and on["wait"] == 10 and on["memory_log_steps"] == 10
assert not settings("hf", "--enable-profiling", "false")["enabled"] and not settings("hf", "--no-enable-profiling")["enabled"]
assert not settings("hf", "--no-stacks", "--no-shapes")["with_stack"]
words = {"hf": ("shapes", "stacks", "enable-profiling"), "trainer": ("profiling", "ptensorboard"),
         "frequency": ("profile", "with-stack", "with-shapes", "export-trace", "export-memory-timeline")}
for style in words:
    for word in words[style]:
        written = {f"--no{dash}{each}" for dash in "-_" for each in (word, word.replace("-", "_"))}
        assert all(settings(style, each, "true") == settings(style, each) for each in written), written
        assert all(settings(style, each, "false") == settings(style, f"--{word}", "true") for each in written), written
        assert all(settings(style, f"--{word}", each) == settings(style, f"--{word}", "false") for each in written), written
assert settings("frequency", "--repeat", "1", "--wait", "3", "--act", "4", "--max_s", "30") == settings(
    "frequency", "--repeat=1", "--wait_steps=3", "--active-steps=4", "--max-steps=30")
assert settings("hf", "--mem", "3", "--enable-m", "--profiler_wait", "1", "--profiler-warm=4")["warmup"] == 4
assert refused("hf", "--profiler", "3") is True and refused("frequency", "--wa", "3") is True  # of several options

def of_parents(*words):  # and of copies
    parent = argparse.ArgumentParser(add_help=False)
    parser = argparse.ArgumentParser(parents=[stepscope.add_arguments(parent, "frequency")])
    assert "--wait-steps N, --wait_steps N" in parser.format_help() or "--wait-steps, --wait_steps N" in parser.format_help()
    return copy.deepcopy(parser).parse_args(words).wait_steps

assert of_parents("--wait", "3") == 3
for wrong in (["--memory-log-steps", "0"], ["--profiler-wait-steps", "-1"], ["--profiler-active-steps", "0"],
              ["--enable-profiling", "perhaps"], ["--no-stacks", "perhaps"], ["--profiler-wait-steps", "x"]):
    assert refused("hf", *wrong) is True, wrong

trainer = settings("trainer", "--profiling", "--prof_dir", "./other", "--ptensorboard")
assert (trainer["enabled"], trainer["output_dir"], trainer["is_board"], trainer["warmup"]) == (True, "./other", True, 1)

steps = settings("frequency", "--profile", "true", model_name="meta-llama/Llama-2-7b-hf", train_type="qlora")
assert (steps["wait"], steps["warmup"], steps["active"], steps["output_dir"]) == (7, 2, 1, "./Llama-2-7b-hf_qlora-0")
assert steps["prefix"] == "Llama-2-7b-hf-qlora-" and settings("frequency")["output_dir"] == "./model_train-0"
assert settings("frequency", "--repeat", "1", "--wait-steps", "1")["wait"] == 1
assert settings("frequency", "--max-steps", "3")["max_steps"] == 10
forced = settings("frequency", "--export_memory_timeline", "true")
assert forced["with_stack"] and forced["record_shapes"] and forced["profile_memory"]
assert settings("frequency", "--profiling_outputs", "a")["output_dir"] == "a"
assert "profiling_frequency wants 3 or more, which is warmup + active (2 + 1), got 2" in refused("frequency", "--profiling_frequency", "2")

block = {"training": {"profiler": {"enabled": True, "start_step": 50, "num_steps": 20, "output_dir": "x", "with_stack": True}}}
run = stepscope.from_yaml(block)
assert (run.enabled, run.wait, run.warmup, run.active, run.repeat, run.with_stack) == (True, 49, 1, 20, 1, True)
simple = stepscope.from_yaml({"profiler": {"type": "simple"}}, ["training.profiler.enabled=true", "+profiler.dirpath=./p"])
assert simple.enabled and simple.output_dir == "./p" and not simple.profile_memory
assert simple.is_whole and simple.filename == "profile" and not run.is_whole
def answer(source, *overrides):
    try:
        run = stepscope.from_yaml(source, *overrides)
        return (run.enabled, run.wait, run.warmup, run.active, run.repeat)
    except ValueError as problem:
        return str(problem)

for block, text in (({"tipe": 1}, "profiler has no key 'tipe' (did you mean 'type'?)"),
                    ({"type": "quick"}, "profiler.type wants simple, advanced or pytorch, got 'quick'"),
                    ({"wait": "soon"}, "profiler.wait wants a whole number, 0 or more, got 'soon'"),
                    ({"wait": True}, "profiler.wait wants a whole number, 0 or more, got True"),
                    ({"active": 0}, "profiler.active wants a whole number, 1 or more, got 0"),
                    ({"repeat": 1.5}, "profiler.repeat wants a whole number, 0 or more, got 1.5"),
                    ({"enabled": "perhaps"}, "profiler.enabled wants true or false, got 'perhaps'"),
                    ({"with_stack": [True]}, "profiler.with_stack wants true or false, got [True]"),
                    ({"output_dir": 3}, "profiler.output_dir wants a path, got 3"),
                    ({"output_dir": ["a"]}, "profiler.output_dir wants a path, got ['a']"),
                    ({"filename": "a/b"}, "profiler.filename wants a name; output_dir has the path, got 'a/b'"),
                    ({"type": "simple", "num_steps": 3}, "profiler.num_steps has no effect with profiler.type simple"),
                    ({3: 4}, "profiler has no key 3"),
                    ({"start_step": 1, "wait": 2}, "profiler.start_step and profiler.wait contradict each other")):
    assert text in answer({"profiler": block}), (block, answer({"profiler": block}))
assert "profiler wants keys with values" in answer({"profiler": ["enabled"]})
assert "profiler wants keys with values" in answer({"trainer": {"profiler": "simple"}})
assert answer({"trainer": {"profiler": "simple"}, "profiling": {"enabled": 1}})[0] is True
one = {"wait": 2, "wait_steps": 2}
assert answer({"profiler": one, "training": {"profiler": {}}, "trainer": {"profiler": one}}) == (False, 2, 0, 1, 0)
assert "two blocks of options, 'profiling' and 'a.b.profiler': keep one" in answer({"a": {"b": {"profiler": {"wait": 2}}}, "profiling": one})
assert "profiler.wait and profiler.wait_steps are the same option: 2 and 3" in answer({"profiler": {**one, "wait_steps": 3}})
assert "profiler.repeat counts cycles, but no option defines a cycle" in answer({"profiler": {"repeat": 2, "skip_first": 3}})
assert "profiler.repeat counts cycles" in answer({}, "profiler.repeat=2") and answer({"profiler": {"repeat": 0}}) == (False, 0, 0, 1, 0)
assert answer({"profiler": {"repeat": 2, "num_steps": 3}}) == (False, 49, 1, 3, 2) and answer({}, ["profiler.repeat=2", "profiler.active=1"])[4] == 2
assert "there is no block 'profilr' (did you mean 'profiler'?)" in answer({"profilr": {"enabled": True}})
off = (False, 0, 0, 1, 0)
assert answer({"profiler": {"enabled": "false"}}) == answer({"profiler": None}) == answer({"lr": 1}) == answer({}) == off
assert answer({"profiler": {"wait": "3", "enabled": "Yes", "warmup": None}}) == (True, 3, 0, 1, 0)
assert answer({}, "profiler.enabled=true") == (True, 0, 0, 1, 0) and answer({}, ["optimizer.lr=3"]) == off
assert "has no value" in answer({}, ["profiler.enabled"]) and "no key 'enabld'" in answer({}, ["profiler.enabld=true"])
assert "wants true or false, got 7" in answer({}, ["profiler.enabled=7"])
for typo, text in (("profilr.enabled=true", "there is no block 'profilr' (did you mean 'profiler'?)"),
                   ("training.profile.enabled=true", "there is no block 'profile' (did you mean 'profiler'?)"),
                   ("profilr=true", "there is no block 'profilr'"), ("profiler=true", "wants a key of the block: profiler.enabled=true"),
                   ("profiler.schedule.wait=3", "profiler has no key 'schedule.wait' (did you mean 'wait'?)"),
                   ("enabled=true", "names no block: profiler.enabled=..."), ("wait=3", "names no block"),
                   ("garbage", "has no value"), ("--profiler.enabled", "has no value")):
    for source in ({}, {"profiler": {"enabled": False}, "training": {"profiler": {}}}):
        found = answer(source, [typo])
        assert isinstance(found, str) and f"the override {typo!r}" in found and text in found, (typo, found)
assert answer({}, "") == answer({}, [" "]) == off
assert answer({}, ["--profiler.enabled=true"]) == answer({}, "++training.profiler.enabled=true") == (True, 0, 0, 1, 0)
theirs = {"type": "gpt", "profile": {"rate": 1}, "trainer": {"profiler": "simple"}, "profiler": {"wait": 4}}
assert answer(theirs, ["type=bert", "profile.rate=2", "profile.other=2", "trainer.profiler=x", "lr=1", "a.b.c="]) == (False, 4, 0, 1, 0)
within = {"lr": 1}
within["itself"] = within
assert answer(within) == off and answer({"a": within, "b": {"profiler": {"wait": 2}}}) == (False, 2, 0, 1, 0)
for _ in range(60):  # nested aliases
    within = {"left": within, "right": within}
assert answer(within) == off
try:
    import yaml
except ImportError:
    yaml = None
for text, wanted in (("profiler: {wait: soon}", "bad.yaml: profiler.wait wants a whole number"), ("[1, 2]", "bad.yaml: expected keys with values"),
                     ("profiler: {", "bad.yaml: invalid YAML: "),
                     ("profiler: {wait: 1}\\nlr: 1\\nprofiler: {active: 1}", "bad.yaml: line 3: duplicate key 'profiler'"),
                     ("a:\\n- profiler: {wait: 1, wait: 2}", "bad.yaml: line 2: duplicate key 'a.profiler.wait'"), ("only a word", "bad.yaml: expected keys with values"), ("\\xff", "bad.yaml: ")):
    with open("bad.yaml", "wb") as file:
        file.write(text.encode("latin-1"))
    assert not yaml or wanted in answer("bad.yaml"), (text, answer("bad.yaml"))
with open("empty.yaml", "w") as file:
    pass
assert not yaml or answer("empty.yaml") == off
with open("theirs.yaml", "w") as file:  # what others have twice is theirs, and a merged key is another's
    file.write("lr: 1\\nlr: 2\\nbase: &b {wait: 1}\\nmore: &m {active: 2}\\nself: &s [*b, *b]\\nprofiler: {<<: *b, <<: *m, wait: 3}\\n")
assert not yaml or answer("theirs.yaml") == (False, 3, 0, 2, 0)

import contextlib, io
def said(style, *words, **defaults):
    parser = argparse.ArgumentParser()
    stepscope.add_arguments(parser, style, **defaults)
    with contextlib.redirect_stderr(io.StringIO()) as lines:
        stepscope.from_args(copy.deepcopy(parser.parse_args(words)))
    return lines.getvalue()

assert said("hf", "--profiler-repeat", "2", "--no-stacks") == "stepscope: --profiler-repeat, --no-stacks have no effect without --enable-profiling\\n"
assert said("hf", "--memory-log-steps", "5") == "stepscope: --memory-log-steps has no effect without --enable-memory-logging\\n"
assert said("trainer", "--wait", "5", "--profiling", "false") == "stepscope: --wait has no effect without --profiling\\n"
assert said("frequency", "--export_memory_timeline", "true") == "stepscope: --export-memory-timeline has no effect without --profile\\n"
for words, defaults in (((), {"wait_steps": 3}), (("--wait-steps", "3"), {"wait_steps": 3}), (("--profile", "--repeat", "2"), {})):
    assert said("frequency", *words, **defaults) == "", words
assert said("hf") == said("trainer") == said("hf", "--enable-memory-logging", "--memory-log-steps", "5") == ""
for wrong in ({"wait": -1}, {"active": "3"}, {"repeat": None}):
    try:
        type(run)(**wrong)
        assert False, wrong
    except ValueError as problem:
        assert "wants a whole number" in str(problem)
with stepscope.from_args(argparse.Namespace()).profile() as nothing:
    nothing.step()
assert stepscope.profiler_end(nothing, run) == ""
assert "PyTorch Profiler ENABLED" in run.describe()
print("fine", "torch" in sys.modules, "" if yaml else "without PyYAML")
"""


@pytest.mark.parametrize("python", dict.fromkeys([*PYTHONS, DEBIANS]))
def test_all_spellings(tmp_path, python):
    done = subprocess.run([python, "-c", PROGRAM], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False,
                          env=environment(PYTHONPATH=PACKAGE))
    assert done.returncode == 0, done.stderr
    assert done.stdout in ("fine False \n", "fine False without PyYAML\n")
    if python == DEBIANS and "without" in done.stdout:
        pytest.skip("Debian's Python has no PyYAML")
