# SPDX-License-Identifier: Apache-2.0
"""The run directory: its name, its mode, `latest`, --out, one directory per job, run.json without secrets."""
import json
import os
import re
import shutil
import stat
import subprocess

import pytest

from run_tools import AS_USERS_HAVE_IT, ACTOR, HOST, STEPSCOPE, TRAINER, environment, finish, manifest, run, run_directory, segments, start


@pytest.mark.parametrize("program, stem", [
    (["true"], "true"),
    (["sh", "-c", "exit 0"], "sh"),
    (["python3", "-u", "train.py", "--x"], "train"),
    (["python3", "-m", "json.tool", "--help"], "tool"),
    (["env", "A=1", "python3", "./sub dir/my.train.py"], "my.train"),
])
def test_name_says_time_program_and_pid(tmp_path, program, stem):
    run(tmp_path, *program)
    assert re.fullmatch(rf"\d{{4}}-\d\d-\d\dT\d\d-\d\d-\d\d_{re.escape(stem)}_\d+", run_directory(tmp_path).name)


def test_only_the_user_may_look_inside(tmp_path):
    run(tmp_path, ACTOR, "steps", "1", "0")
    directory = run_directory(tmp_path)
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in directory.iterdir())


def test_latest_points_to_the_newest(tmp_path):
    for _ in range(2):
        run(tmp_path, "true")
        names = sorted(path.name for path in (tmp_path / "stepscope-runs").iterdir() if path.name != "latest")
        pids = {name: int(name.rsplit("_", 1)[1]) for name in names}
        assert os.readlink(tmp_path / "stepscope-runs" / "latest") == max(names, key=lambda name: (name[:19], pids[name]))


def test_latest_points_to_a_given_directory_too(tmp_path):
    assert run(tmp_path, "true", options=["--out", tmp_path / "elsewhere"]).returncode == 0
    assert os.readlink(tmp_path / "stepscope-runs" / "latest") == str(tmp_path / "elsewhere")
    assert run(tmp_path, "true").returncode == 0
    assert run(tmp_path, ACTOR, "steps", "3", "0", options=["--out", tmp_path / "other"]).returncode == 0
    assert os.readlink(tmp_path / "stepscope-runs" / "latest") == str(tmp_path / "other")
    latest = subprocess.run([STEPSCOPE, "report"], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert latest.stdout.startswith(f"run        {tmp_path}/other\n"), latest
    shutil.rmtree(tmp_path / "other")
    gone = subprocess.run([STEPSCOPE, "report"], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert gone.returncode == 3 and f"the latest run is missing: 'stepscope-runs/latest' points to '{tmp_path}/other'" in gone.stderr


def test_something_else_called_latest_is_left_alone(tmp_path):
    (tmp_path / "stepscope-runs" / "latest").mkdir(parents=True)
    assert run(tmp_path, "true").returncode == 0
    assert (tmp_path / "stepscope-runs" / "latest").is_dir()


def test_other_place_by_environment(tmp_path):
    done = run(tmp_path, ACTOR, "steps", "1", "0", env={"STEPSCOPE_DIR": tmp_path / "a" / "b"})
    assert (tmp_path / "a" / "b" / "latest" / "run.json").exists()
    assert f"stepscope report {tmp_path}/a/b/" in done.stderr


def test_out(tmp_path):
    done = run(tmp_path, ACTOR, "steps", "1", "0", options=["--out", "runs/a"])
    assert done.stderr.splitlines()[1] == "stepscope: report: stepscope report runs/a"
    assert (tmp_path / "runs" / "a" / "run.json").exists()
    assert [path.name for path in (tmp_path / "stepscope-runs").iterdir()] == ["latest"]


def test_out_of_another_run_is_refused(tmp_path):
    run(tmp_path, ACTOR, "steps", "1", "0", options=["--out", "a"])
    done = run(tmp_path, "touch", "it-ran", options=["--out", "a"])
    assert done.returncode == 2 and not (tmp_path / "it-ran").exists()
    assert done.stderr.startswith("stepscope: error: 'a' already holds the recordings of another run\nhint: ")


def test_of_two_runs_at_once_one_has_the_directory(tmp_path):
    for name in "abcde":
        both = [start(tmp_path, ACTOR, "steps", "1", "0", "sleep", "300", options=["--out", name]) for _ in range(2)]
        done = [finish(process) for process in both]
        assert sorted(one.returncode for one in done) == [0, 2], [one.stderr for one in done]
        assert len(segments(tmp_path / name, HOST)) == 1


@pytest.mark.parametrize("name, shown", [
    ("my run", "'my run'"), ("it's", "'it'\\''s'"), ("a*b", "'a*b'"), ("x\x1b[31m\ny\\", r"$'x\033[31m\012y\\'"), ("-x", "./-x"),
    ("plain-1.2", "plain-1.2"), ("zażółć", "'zażółć'"), ("a\u009bb", r"$'a\302\233b'"),
])
def test_command_that_is_shown_can_be_copied(tmp_path, name, shown):
    done = run(tmp_path, ACTOR, "steps", "1", "0", options=[f"--out={name}"])
    line = done.stderr.splitlines()[1]
    assert line == f"stepscope: report: stepscope report {shown}"
    word = line.rpartition("stepscope report ")[2]
    assert subprocess.run(["bash", "-c", f"ls {word}/run.json"], cwd=tmp_path, check=False, capture_output=True).returncode == 0


def test_out_may_hold_other_files(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "notes.txt").write_text("mine")
    assert run(tmp_path, ACTOR, "steps", "1", "0", options=["--out", "a"]).returncode == 0
    assert (tmp_path / "a" / "notes.txt").read_text() == "mine"


def test_inherited_directory_wins(tmp_path):
    done = run(tmp_path, ACTOR, "steps", "1", "0", options=["--out", "b"], env={"STEPSCOPE_RUN_DIR": tmp_path / "a"})
    assert done.stderr.startswith(f"stepscope: --out b has no effect: this run joins the one in {tmp_path}/a (STEPSCOPE_RUN_DIR)\n")
    assert segments(tmp_path / "a", TRAINER) and not (tmp_path / "b").exists()


def test_report_of_two_runs_in_the_same_second(tmp_path):
    processes = [start(tmp_path, "true") for _ in range(4)]
    assert [finish(process).returncode for process in processes] == [0] * 4
    assert len(list((tmp_path / "stepscope-runs").glob("*_true_*"))) == 4


SLURM = {"SLURM_JOB_ID": 77, "SLURM_STEP_ID": 2, "SLURM_NTASKS": 3, "SLURM_STEP_NUM_TASKS": 3}


def start_ranks(tmp_path, count, variables, options=()):
    return [start(tmp_path, ACTOR, "steps", "5", "0", "sleep", "300", options=options,
                  env={**variables(rank), "RANK": rank, "WORLD_SIZE": count}) for rank in range(count)]


@pytest.mark.parametrize("name, variables", [
    ("slurm-77.2_actor", lambda rank: {**SLURM, "SLURM_PROCID": rank}),
    ("torchrun-abc_actor", lambda rank: {"TORCHELASTIC_RUN_ID": "abc"}),
    ("pmix-prte-1-2_actor", lambda rank: {"PMIX_NAMESPACE": "prte@1.2".replace("@", "-").replace(".", "-"), "PMIX_RANK": rank}),
    ("ompi-42_actor", lambda rank: {"OMPI_MCA_ess_base_jobid": 42, "OMPI_COMM_WORLD_SIZE": 3}),
])
def test_ranks_of_a_job_make_one_run(tmp_path, name, variables):
    done = [finish(process) for process in start_ranks(tmp_path, 3, variables)]
    assert [one.returncode for one in done] == [0] * 3
    directory = run_directory(tmp_path)
    assert directory.name == name
    assert {segment.rank for segment in segments(directory, TRAINER)} == {0, 1, 2}
    assert len({segment.pid for segment in segments(directory, HOST)}) == 3
    assert json.loads((directory / "run.json").read_text())["job"] == name.removesuffix("_actor")


def test_torchrun_without_an_id_on_one_machine(tmp_path):
    variables = {"TORCHELASTIC_RUN_ID": "none", "LOCAL_WORLD_SIZE": 3}
    for process in start_ranks(tmp_path, 3, lambda rank: variables):
        finish(process)
    assert re.fullmatch(rf"torchrun-.*-{os.getpid()}-\d+_actor", run_directory(tmp_path).name)


def test_ranks_of_a_job_share_an_out_directory(tmp_path):
    for process in start_ranks(tmp_path, 3, lambda rank: {**SLURM, "SLURM_PROCID": rank}, options=["--out", "a"]):
        assert finish(process).returncode == 0
    late = {**SLURM, "SLURM_PROCID": 2}
    assert run(tmp_path, "true", options=["--out", "a"], env=late).returncode == 0
    assert run(tmp_path, "true", options=["--out", "a"], env={**late, "SLURM_STEP_ID": 3}).returncode == 2


def test_a_step_of_one_task_is_no_job(tmp_path):
    run(tmp_path, "true", env={"SLURM_JOB_ID": 77, "SLURM_STEP_ID": 0, "SLURM_PROCID": 0, "SLURM_NTASKS": 1})
    assert re.match(r"\d{4}-", run_directory(tmp_path).name)


def test_manifest_tells_the_circumstances(tmp_path):
    run(tmp_path, ACTOR, "steps", "1", "0", options=["--wait", "1", "--active", "1"],
        env={"CUDA_VISIBLE_DEVICES": "0,1", "OMP_NUM_THREADS": 4, "PRIVATE_THING": "x", "RANK": 3, **AS_USERS_HAVE_IT})
    told = manifest(tmp_path)
    assert told["schema"] == "stepscope.run/1"
    assert re.fullmatch("[0-9a-f]{32}", told["run_id"])
    assert told["argv"] == [ACTOR, "steps", "1", "0"] and told["cwd"] == str(tmp_path)
    assert told["schedule"] == {"wait": "1", "active": "1"}
    assert told["environment"]["CUDA_VISIBLE_DEVICES"] == "0,1" and told["environment"]["RANK"] == "3"
    assert "PRIVATE_THING" not in told["environment"] and "HOME" not in told["environment"]
    assert told["cores"] >= 1 and told["memory_bytes"] > 1 << 20 and told["kernel"]


@pytest.mark.parametrize("options, env, reason", [
    (["--no-enabled"], {}, "enabled=false"),
    ([], {"STEPSCOPE_ENABLED": "false"}, "enabled=false"),
    (["-c", "off.yaml"], {}, "enabled=false"),
    (["--steps", "all"], {"STEPSCOPE": "0"}, "STEPSCOPE=0 in the environment"),
    ([], {"STEPSCOPE": "off"}, "STEPSCOPE=0 in the environment"),
])
def test_switched_off_is_obeyed_by_programs_that_ask(tmp_path, options, env, reason):
    (tmp_path / "off.yaml").write_text("profiler: {enabled: false}\n")
    done = run(tmp_path, ACTOR, "init", "wait=0", "steps", "3", "0", options=options, env=env)
    assert done.stdout == b"0\n" and done.returncode == 0
    assert done.stderr == f"stepscope: captured nothing: recording is off ({reason})\n"
    assert {path.name for path in tmp_path.iterdir()} == {"off.yaml"}


def test_unknown_value_of_the_switch_is_on(tmp_path):
    assert "captured all 3 steps" in run(tmp_path, ACTOR, "steps", "3", "0", env={"STEPSCOPE": "yes"}).stderr


SECRETS = [
    (["--token=S3CRET", "--lr=1"], ["--token=***", "--lr=1"]),
    (["--hf-token", "S3CRET", "-x"], ["--hf-token", "***", "-x"]),
    (["wandb.api_key=S3CRET"], ["wandb.api_key=***"]),
    (["--password", "S3CRET"], ["--password", "***"]),
    (["--db-pass", "S3CRET", "--dbpass=S3CRET", "DB_PASS=S3CRET"], ["--db-pass", "***", "--dbpass=***", "DB_PASS=***"]),
    (["--ssl-keypasswd", "S3CRET", "-p", "8080", "--passes", "3"], ["--ssl-keypasswd", "***", "-p", "8080", "--passes", "3"]),
    (["WANDB_API_KEY=S3CRET"], ["WANDB_API_KEY=***"]),
    (["https://me:S3CRET@example.org/x"], ["https://me:***@example.org/x"]),
    (["--url=https://me:S3CRET@example.org/x?token=S3CRET&a=1"], ["--url=https://me:***@example.org/x?token=***&a=1"]),
    (["Authorization: Bearer S3CRET"], ["Authorization: Bearer ***"]),
    (["do --secret S3CRET --tokens 5; x"], ["do --secret *** --tokens 5; x"]),
    (["hf_S3CRETS3CRETS3CRETS3CRET"], ["***"]),
    (["--tokenizer=gpt2", "--max_tokens", "4096", "--epochs", "3"], ["--tokenizer=gpt2", "--max_tokens", "4096", "--epochs", "3"]),
]


@pytest.mark.parametrize("given, kept", SECRETS)
def test_secrets_are_not_written_down(tmp_path, given, kept):
    run(tmp_path, "true", *given)
    directory = run_directory(tmp_path)
    assert manifest(tmp_path)["argv"] == ["true", *kept]
    assert subprocess.run(["grep", "-rl", "S3CRET", directory], capture_output=True, check=False).stdout == b""


def test_N09_nothing_that_we_write_holds_a_secret(tmp_path):
    """Not what is recorded, and so not what reports and exports make of it; of variables only those of launchers are kept."""
    secrets = {"HF_TOKEN": "S3CRET", "AWS_SECRET_ACCESS_KEY": "S3CRET", "SLURM_JWT": "S3CRET", "MY_OWN": "S3CRET"}
    done = run(tmp_path, ACTOR, "steps", "3", "0", "write", "1", "--token=S3CRET", "write", "1", "hf_S3CRETS3CRETS3CRETS3CRET", env=secrets)
    assert done.returncode == 0 and done.stdout.count(b"S3CRET") == 5 and "S3CRET" not in done.stderr  # the program itself has them
    directory = run_directory(tmp_path)
    out = tmp_path / "out"
    out.mkdir()
    for i, arguments in enumerate((["report", directory, "--json"], ["report", directory, "--table", "facts"], ["diagnose", directory, "--json"],
                                   ["info", directory])):
        with open(out / str(i), "wb") as file:
            subprocess.run([STEPSCOPE, *arguments], stdout=file, env=environment(tmp_path), timeout=60, check=True)
    for name in ("trace.json", "trace.pftrace"):
        subprocess.run([STEPSCOPE, "export", "--quiet", directory, "-o", out / name], env=environment(tmp_path), timeout=60, check=True)
    files = [path for folder in (directory, out) for path in folder.rglob("*") if path.is_file()]
    assert len(files) > 7 and not [path for path in files if b"S3CRET" in path.read_bytes()]


def test_secret_variables_are_not_written_down(tmp_path):
    run(tmp_path, "true", env={"SLURM_JWT": "S3CRET", "NCCL_X": "http://u:S3CRET@h", "STEPSCOPE_DIR": tmp_path / "stepscope-runs"})
    assert "S3CRET" not in (run_directory(tmp_path) / "run.json").read_text()
