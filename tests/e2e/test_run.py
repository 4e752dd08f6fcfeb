# SPDX-License-Identifier: Apache-2.0
"""`stepscope run`: exit statuses, an undisturbed program, options."""
import os
import subprocess
from pathlib import Path

import pytest

from run_tools import AS_USERS_HAVE_IT, ACTOR, STEPSCOPE, environment, host_facts, manifest, run, run_directory, segments, TRAINER


@pytest.mark.parametrize("program, status", [
    (["true"], 0),
    (["sh", "-c", "exit 3"], 3),
    (["sh", "-c", "exit 255"], 255),
    (["sh", "-c", "kill -9 $$"], 137),
    (["sh", "-c", "kill -15 $$"], 143),
    ([ACTOR, "steps", "3", "0", "exit", "4"], 4),
    ([ACTOR, "steps", "3", "0", "abort"], 134),
])
def test_exit_status_is_the_programs_own(tmp_path, program, status):
    assert run(tmp_path, *program).returncode == status


def test_program_that_does_not_exist(tmp_path):
    done = run(tmp_path, "no-such-program-here")
    assert done.returncode == 127
    assert done.stderr == "stepscope: error: cannot start 'no-such-program-here': no such program in PATH\n"
    assert not list((tmp_path / "stepscope-runs").iterdir()), "an empty run must not stay"


def test_program_that_may_not_be_executed(tmp_path):
    (tmp_path / "data.txt").write_text("no program")
    done = run(tmp_path, "./data.txt")
    assert done.returncode == 126
    assert "cannot start './data.txt': Permission denied" in done.stderr


def test_script_without_its_interpreter(tmp_path):
    script = tmp_path / "train.py"
    script.write_text("#!/no/such/python\n")
    script.chmod(0o755)
    done = run(tmp_path, "./train.py")
    assert done.returncode == 127
    assert "interpreter" in done.stderr


def test_script_without_first_line_is_run_by_sh(tmp_path):
    script = tmp_path / "script"
    script.write_text("exit 7\n")
    script.chmod(0o755)
    assert run(tmp_path, "./script").returncode == 7


def test_streams_pass_every_byte(tmp_path):
    data = bytes(range(256)) * 4096
    done = run(tmp_path, "cat", data=data)
    assert done.stdout == data
    done = run(tmp_path, ACTOR, "write", "1", "out", "write", "2", "err\n", "steps", "2", "0")
    assert done.stdout == b"out"
    assert done.stderr.startswith("err\nstepscope: ")


def test_standard_output_may_be_closed(tmp_path):
    command = f"exec '{STEPSCOPE}' run -- sh -c 'exit 5' >&- 2>&-"
    assert subprocess.run(["sh", "-c", command], cwd=tmp_path, env=environment(tmp_path), check=False).returncode == 5


def test_program_inherits_no_descriptor_of_ours(tmp_path):
    done = run(tmp_path, "python3", "-c", "import os; print(sorted(os.listdir('/proc/self/fd'))[:-1])")
    assert done.stdout == b"['0', '1', '2']\n"


def test_program_keeps_descriptors_of_the_caller(tmp_path):
    read, write = os.pipe()
    process = subprocess.run([STEPSCOPE, "run", "-q", "--", "python3", "-c", f"import os; os.write({write}, b'hello')"], cwd=tmp_path,
                             env=environment(tmp_path), pass_fds=[write], check=True)
    os.close(write)
    assert process.returncode == 0 and os.read(read, 100) == b"hello"
    os.close(read)


def test_program_has_the_callers_signal_state(tmp_path):
    look = ["grep", "-E", "^Sig(Blk|Ign|Cgt)", "/proc/self/status"]
    direct = subprocess.run(look, capture_output=True, cwd=tmp_path, env=environment(tmp_path), check=True)
    assert run(tmp_path, *look).stdout == direct.stdout


def test_program_sees_the_run_in_its_environment(tmp_path):
    done = run(tmp_path, "env", options=["--wait", "2", "--active", "3"], env={"STEPSCOPE_WARMUP": 1, "MINE": "kept", **AS_USERS_HAVE_IT})
    seen = dict(line.split("=", 1) for line in done.stdout.decode().splitlines())
    assert seen["STEPSCOPE"] == "1"
    assert seen["STEPSCOPE_RUN_DIR"] == str(run_directory(tmp_path))
    assert seen["STEPSCOPE_OPTIONS"] == "wait=2,warmup=1,active=3"
    assert "STEPSCOPE_WARMUP" not in seen and seen["MINE"] == "kept"


def test_two_lines_at_the_end(tmp_path):
    done = run(tmp_path, ACTOR, "steps", "20", "100")
    lines = done.stderr.splitlines()
    assert lines == ["stepscope: captured all 20 steps (0-19) with operators",
                     f"stepscope: report: stepscope report stepscope-runs/{run_directory(tmp_path).name}"]


def test_long_names_do_not_hide_the_sentence(tmp_path):
    names = [word for n in range(4) for word in ("open", f"{n}" + "x" * 65000)]
    done = run(tmp_path, ACTOR, "steps", "20", "0", *names)
    assert done.stderr.startswith("stepscope: captured all 20 steps (0-19) with operators\n")


def test_schedule_that_never_came_is_explained(tmp_path):
    done = run(tmp_path, ACTOR, "steps", "12", "0", options=["--wait", "50"])
    assert "captured no operators: the schedule waits for 50 steps and the program ended after 12" in done.stderr


def test_program_that_never_calls_us(tmp_path):
    done = run(tmp_path, "python3", "-c", "x = bytearray(64 << 20); sum(range(2000000))")
    first, second, third = done.stderr.splitlines()
    assert first.startswith("stepscope: captured no steps: the program did not call stepscope, or could not record "
                            "(then a message above says why); wall ")
    assert "peak memory" in first and "CPU" in first
    assert second.startswith("stepscope: report: stepscope report ")
    assert "stepscope_step_begin()" in third
    facts = host_facts(run_directory(tmp_path))
    pid = facts["child"]
    assert facts["exit"] == "0" and facts[f"child.{pid}.status"] == "0"
    assert int(facts[f"child.{pid}.wall_ns"]) > int(1e7)
    assert int(facts[f"child.{pid}.max_rss_bytes"]) > 64 << 20
    assert int(facts[f"child.{pid}.user_ns"]) > 0


def test_disk_traffic_of_the_program_is_told(tmp_path):
    run(tmp_path, "dd", "if=/dev/zero", f"of={tmp_path}/data", "bs=1M", "count=8", "conv=fsync")
    facts = host_facts(run_directory(tmp_path))
    assert int(facts[f"child.{facts['child']}.write_bytes"]) >= 8 << 20


def test_quiet_says_nothing(tmp_path):
    assert run(tmp_path, ACTOR, "steps", "2", "0", options=["-q"]).stderr == ""


def test_verbose_names_the_directory_first(tmp_path):
    done = run(tmp_path, "true", options=["--verbose"])
    assert done.stderr.startswith(f"stepscope: recording into {run_directory(tmp_path)}\n")


@pytest.mark.parametrize("arguments, text", [
    ([], "the program is missing"),
    (["--"], "the program is missing"),
    (["train", "--steps", "5"], "'train' is before the '--'"),
    (["train", "--", "more"], "'train' is before the '--'"),
    (["--wiat", "3", "--", "true"], "--wiat"),
    (["--wait", "soon", "--", "true"], "soon"),
    (["--wait", "1", "--steps", "5-6", "--", "true"], "--steps"),
    (["--set", "nonsense", "--", "true"], "KEY=VALUE"),
    (["--set", "profiler.wiat=3", "--", "true"], "wiat"),
])
def test_wrong_command_lines_are_refused_before_anything_runs(tmp_path, arguments, text):
    done = subprocess.run([STEPSCOPE, "run", *arguments], cwd=tmp_path, env=environment(tmp_path), capture_output=True,
                          text=True, check=False)
    assert done.returncode == 2
    assert text in done.stderr and done.stderr.startswith("stepscope: error: ")
    assert not (tmp_path / "stepscope-runs").exists()


def test_configuration_that_does_not_exist(tmp_path):
    done = run(tmp_path, "touch", "it-ran", options=["--config", "missing.yaml"])
    assert done.returncode == 3 and "cannot read 'missing.yaml'" in done.stderr and not (tmp_path / "it-ran").exists()


def test_settings_of_a_file(tmp_path):
    (tmp_path / "stepscope.yaml").write_text("profiler:\n  wait_steps: 3\n  active_steps: 2\n  repeat: 1\n")
    done = run(tmp_path, "printenv", "STEPSCOPE_OPTIONS", env=AS_USERS_HAVE_IT)
    assert done.stdout == b"wait=3,active=2,repeat=1\n"


@pytest.mark.parametrize("text, expected", [
    ("wait: 5\nwarmup_steps: 1\n", "wait=5,warmup=1"),  # options alone, at the top
    ("steps: [3-4, 9]\nwith: [shapes]\n", "steps=3-4:9,with=shapes"),
    ("profiler:\n", None), ("model: x\nprofiler: ~\n", None), ("training: {profiler: {}}\n", None),
    # of others: what they have is passed over, whatever it is
    ("base: &b {lr: 1}\ntrain:\n  <<: *b\n  warmup: *b\n*b : 1\nprofiler: {wait: 2}\n", "wait=2"),
    ("profiler: {wait: 2}\n---\nmodel: x\nwait: 3\n--- text\n", "wait=2"),
    # one block only has options, and a name twice says one thing
    ("trainer: {profiler: simple}\nmine: {profiler: {wait: 2, wait_steps: 2}}\nprofiling: {}\n", "wait=2"),
])
def test_configurations_of_all_shapes(tmp_path, text, expected):
    (tmp_path / "mine.yaml").write_text(text)
    done = run(tmp_path, "sh", "-c", "echo ${STEPSCOPE_OPTIONS-none}", options=["-c", "mine.yaml"], env=AS_USERS_HAVE_IT)
    assert done.returncode == 0, done.stderr
    assert done.stdout.decode().strip() == (expected or "none")


@pytest.mark.parametrize("text, message", [
    ("wait: 5\nmodel: x\n", "'mine.yaml' has no options for stepscope"),  # a training's own `wait`
    ("profilr: {wait: 5}\n", "did you mean 'profiler.wait'?"),
    ("w: &w 3\nprofiler: {wait: *w}\n", "'mine.yaml' line 2: aliases (*name) are not supported; write the value"),
    ("p: &p {wait: 3}\nprofiler: *p\n", "'mine.yaml' line 2: aliases (*name) are not supported; write the value"),
    ("p: &p {wait: 3}\nprofiler:\n  <<: *p\n", "'mine.yaml' line 3: aliases (*name) are not supported; write the value"),
    ("wait: 1\n---\nwarmup: 3\n", "'mine.yaml' line 3: the file has a second document"),
    ("model: x\n---\nprofiler: {wait: 3}\n", "'mine.yaml' line 3: the file has a second document"),
    ("profiler:\n  wait: 3\na: {b: {profiling: {active: 2}}}\n",
     "'mine.yaml' has two blocks of options: 'profiler' (line 2) and 'a.b.profiling' (line 3)"),
    ("runs:\n- profiler: {wait: 3}\n- profiler: {wait: 3}\n", "'runs.0.profiler' (line 2) and 'runs.1.profiler' (line 3)"),
    ("profiler: {wait: 3}\nprofiler: {active: 3}\n", "'mine.yaml' line 2: duplicate key 'profiler'"),
    ("profiler:\n  wait: 3\n  wait_steps: 4\n",
     "'mine.yaml' line 3: 'profiler.wait_steps' is the same option as 'profiler.wait' in line 2"),
    ("profiler_wait_steps: 4\nprofiler: {wait: 3}\n", "'profiler.wait' is the same option as 'profiler_wait_steps' in line 1"),
    ("profiler: {repeat: 2}\n", "repeat (mine.yaml:1) counts cycles, but no option defines a cycle: add active, wait or warmup"),
    ("profiler: {with: [shapes, '']}\n", "profiler.with.1 (mine.yaml:1) is an empty item of a list"),
])
def test_configurations_that_are_refused(tmp_path, text, message):
    (tmp_path / "mine.yaml").write_text(text)
    done = run(tmp_path, "touch", "it-ran", options=["-c", "mine.yaml"])
    assert done.returncode == 2 and message in done.stderr and not (tmp_path / "it-ran").exists()


def test_later_sources_win(tmp_path):
    (tmp_path / "mine.yaml").write_text("model_name: gpt\nprofiler: {enabled: true, wait: 1, warmup: 1, active: 1}\n")
    options = ["--config", "mine.yaml", "--set", "profiler.warmup=7", "--active", "9"]
    done = run(tmp_path, "printenv", "STEPSCOPE_OPTIONS", options=options, env={"STEPSCOPE_WAIT": 5, "STEPSCOPE_WARMUP": 6, **AS_USERS_HAVE_IT})
    assert done.stdout == b"enabled=true,wait=5,warmup=7,active=9\n"
    assert manifest(tmp_path)["schedule"] == {"enabled": "true", "wait": "5", "warmup": "7", "active": "9"}


def test_switched_off_runs_as_without(tmp_path):
    done = run(tmp_path, "sh", "-c", "echo ${STEPSCOPE_RUN_DIR-none}", options=["--no-enabled"])
    assert done.stdout == b"none\n" and done.returncode == 0
    assert done.stderr == "stepscope: captured nothing: recording is off (enabled=false)\n"
    assert run(tmp_path, "true", env={"STEPSCOPE_ENABLED": "false"}).stderr == done.stderr
    assert run(tmp_path, "true", options=["-q", "--no-enabled"]).stderr == ""
    assert not (tmp_path / "stepscope-runs").exists()


def test_nested_run_joins(tmp_path):
    done = run(tmp_path, STEPSCOPE, "run", "--", ACTOR, "steps", "5", "0", "exit", "6")
    assert done.returncode == 6
    directory = run_directory(tmp_path)
    assert len(segments(directory, TRAINER)) >= 1
    assert len(list(directory.glob("run.json"))) == 1
    assert done.stderr.count("captured all 5 steps") == done.stderr.count("stepscope report") == 1
    assert done.stderr.endswith(f"stepscope: report: stepscope report stepscope-runs/{directory.name}\n")


def test_nested_run_does_not_use_its_out(tmp_path):
    done = run(tmp_path, STEPSCOPE, "run", "--out", "b", "--", ACTOR, "steps", "5", "0")
    first, second, _ = done.stderr.splitlines()
    assert first == f"stepscope: --out b has no effect: this run joins the one in {run_directory(tmp_path)} (STEPSCOPE_RUN_DIR)"
    assert second == "stepscope: captured all 5 steps (0-4) with operators"
    assert not (tmp_path / "b").exists()


def test_kill_below_a_nested_run_is_told_once(tmp_path):
    done = run(tmp_path, STEPSCOPE, "run", "--", ACTOR, "steps", "5", "0", "open", "conv", "kill", "9")
    assert done.returncode == 137
    assert done.stderr.count("killed") <= 1 and done.stderr.count("recorded up to its end at step 4") == 1, done.stderr


def test_help_lists_every_option(tmp_path):
    text = subprocess.run([STEPSCOPE, "run", "--help"], capture_output=True, text=True, cwd=tmp_path, check=True).stdout
    for option in ("--out", "--config", "--set", "--no-host", "--wait", "--steps", "--ranks", "--with", "--keep-size"):
        assert option in text
    page = Path(__file__).resolve().parents[2] / "docs" / "commands" / "run.md"
    rows = [line.split()[:3] for line in text.split("Common options:")[0].splitlines() if line.startswith("  ")]
    listed = {word.rstrip(",") for row in rows for word in row if word.startswith("--") and len(word) > 2}
    assert len(listed) > 20 and {name for name in listed if name not in page.read_text()} == set()
