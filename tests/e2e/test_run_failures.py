# SPDX-License-Identifier: Apache-2.0
"""Trouble on our side: the program runs to its end, exits with its own status, and one line says what is missing."""
import os
import re
import shutil
import signal
import subprocess

import pytest

from run_tools import ACTOR, HOST, STEPSCOPE, await_directory, environment, finish, run, segments, start, wait_for

needs_root = pytest.mark.skipif(os.getuid() != 0, reason="mounts need root")


def in_mounts(tmp_path, script):
    """Runs a shell script in mount namespace of its own; $S is the program, $A the actor, $L where its library is."""
    return subprocess.run(["unshare", "-m", "sh", "-euc", script], cwd=tmp_path, capture_output=True, text=True, timeout=60,
                          env=environment(tmp_path, S=STEPSCOPE, A=ACTOR, L=os.path.join(os.environ.get("BUILD", "build"), "src", "recorder")), check=False)


def can_mount():
    return os.getuid() == 0 and subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode == 0


needs_mounts = pytest.mark.skipif(not can_mount(), reason="needs root and mount namespaces")


def test_base_that_is_a_file(tmp_path):
    (tmp_path / "stepscope-runs").write_text("")
    done = run(tmp_path, ACTOR, "steps", "3", "0", "write", "1", "done", "exit", "3")
    assert done.returncode == 3 and done.stdout == b"done"
    assert re.fullmatch(r"stepscope: cannot create .*stepscope-runs.*; the program runs unrecorded\n", done.stderr)


@needs_mounts
def test_read_only_directory(tmp_path):
    done = in_mounts(tmp_path, "mkdir ro; mount -t tmpfs -o ro none ro; cd ro; \"$S\" run -- \"$A\" steps 3 0 exit 3")
    assert done.returncode == 3
    assert re.fullmatch(r"stepscope: cannot create the directory 'stepscope-runs': Read-only file system; "
                        r"the program runs unrecorded\n", done.stderr)


@needs_mounts
def test_full_disk_from_the_start(tmp_path):
    done = in_mounts(tmp_path, "mkdir full; mount -t tmpfs -o size=64k none full; cd full; "
                               "dd if=/dev/zero of=fill bs=4k 2>/dev/null || true; \"$S\" run -- \"$A\" steps 100 100 exit 3")
    assert done.returncode == 3, done.stderr
    assert "No space left on device" in done.stderr


@needs_mounts
def test_disk_that_fills_up(tmp_path):
    done = in_mounts(tmp_path, "mkdir small; mount -t tmpfs none /dev/shm; mount -t tmpfs -o size=256k none small; cd small; "
                               "\"$S\" run -- \"$A\" steps 1000000 0 exit 3")
    assert done.returncode == 3, done.stderr
    assert re.search(r"the end of the recording could not be written: .*No space left on device", done.stderr), done.stderr


@needs_mounts
def test_room_again_brings_the_end_back(tmp_path):
    done = in_mounts(tmp_path, "mkdir small; mount -t tmpfs none /dev/shm; mount -t tmpfs -o size=96k none small; cd small; "
                               "\"$S\" run --pool 64M --out a -- \"$A\" steps 300000 0; \"$S\" report a; "
                               "mount -o remount,size=9m .; \"$S\" report a")
    full, mended = (" ".join(text.split()) for text in re.split("^run ", done.stdout, flags=re.MULTILINE)[1:])
    assert "is missing Step time" in full and "could not be added: cannot append" in full, done
    assert "is missing Step" not in mended and "0 to 299999:" in mended and "0 dropped" in mended, mended


@needs_mounts
def test_a_limit_on_file_size_is_as_a_full_disk(tmp_path):
    """What the file may not take waits in /dev/shm, the rest is counted, and a report without the limit has it all."""
    done = in_mounts(tmp_path, "mount -t tmpfs none /dev/shm; (ulimit -f 1024; \"$S\" run --out a -- \"$A\" steps 5000000 0 exit 3) || echo rc $?; "
                               "\"$S\" report a")
    assert "rc 3" in done.stdout and "the end of the recording could not be written: " in done.stderr, done
    assert "File too large" in done.stderr, done.stderr
    report = " ".join(done.stdout.split())
    assert "missing tail" not in report and "killed" not in report, report
    assert int(re.search(r"([\d,]+) dropped", report)[1].replace(",", "")) > 0, report


@needs_mounts
def test_a_file_that_could_take_nothing_is_not_said_to_miss_a_second(tmp_path):
    done = in_mounts(tmp_path, "(ulimit -f 20; STEPSCOPE=1 STEPSCOPE_RUN_DIR=$PWD/a \"$A\" steps 100000 0 exit 3) || echo rc $?; \"$S\" report a")
    report = " ".join(done.stdout.split())
    assert "rc 3" in report and "or its file could not be written" in report, done
    assert "more if its file could not be written" in report and "(up to a second)" not in report, report


@needs_mounts
@pytest.mark.parametrize("pause", [1500, 600])  # before our clock of one second, too
@pytest.mark.parametrize("shm", ["mount -t tmpfs -o size=64k none /dev/shm", "mount -t tmpfs -o ro none /dev/shm"])
def test_tail_survives_without_shared_memory(tmp_path, shm, pause):
    done = in_mounts(tmp_path, f"{shm}; \"$S\" run --out a -- \"$A\" steps 30 1000 sleep {pause} steps 40 100 open conv kill 9")
    assert done.returncode == 137
    assert "last step 39, last op 'conv'" in done.stderr, done.stderr


ODD_NAMES = ["100% of it %s%n", "two  blanks ", "\u8bad\u7ec3 \u2713", b"no \xff text", "-o", "a;b&c'd\"e$(f)", "x" * 255]


@pytest.mark.parametrize("name", ODD_NAMES)
def test_S07_directories_of_any_name(tmp_path, name):
    """What is written there is read there, whatever bytes its path has."""
    folder = os.path.join(os.fsencode(tmp_path), os.fsencode(name))
    os.mkdir(folder)
    done = run(folder, ACTOR, "steps", "3", "0", "exit", "3")
    assert done.returncode == 3 and "captured all 3 steps" in done.stderr, done.stderr
    for path in ("latest", os.path.join(folder, b"stepscope-runs", b"latest")):
        read = subprocess.run([STEPSCOPE, "query", path, "SELECT count(*) FROM steps", "--csv"], cwd=folder, capture_output=True, timeout=60, check=False,
                              env=environment(tmp_path))
        assert read.stdout.split() == [b"count(*)", b"3"], read.stderr


@needs_mounts
def test_S07_a_folder_for_temporary_files_where_nothing_runs(tmp_path):
    done = in_mounts(tmp_path, "mkdir t; mount -t tmpfs -o noexec none t; export TMPDIR=$PWD/t; \"$S\" run --out a -- \"$A\" steps 5 0 exit 3")
    assert done.returncode == 3 and "captured all 5 steps" in done.stderr, done.stderr


def test_directory_removed_meanwhile(tmp_path):
    process = start(tmp_path, ACTOR, "steps", "10", "1000", "write", "1", "r", "sleep", "1500", "steps", "10", "1000",
                    "exit", "3")
    assert process.stdout.read(1) == b"r"
    directory = await_directory(tmp_path)
    shutil.rmtree(directory)
    done = finish(process)
    assert done.returncode == 3
    assert f"the run directory 'stepscope-runs/{directory.name}' was removed while the program ran" in done.stderr


def test_working_directory_removed_meanwhile(tmp_path):
    (tmp_path / "x").mkdir()
    process = start(tmp_path / "x", ACTOR, "steps", "10", "1000", "write", "1", "r", "sleep", "1000", "exit", "3")
    assert process.stdout.read(1) == b"r"
    shutil.rmtree(tmp_path / "x")
    assert finish(process).returncode == 3


def test_we_are_killed_and_the_program_goes_on(tmp_path):
    process = start(tmp_path, ACTOR, "steps", "10", "1000", "write", "1", "r", "sleep", "1000", "write", "1", "alive")
    assert process.stdout.read(1) == b"r"
    os.kill(process.pid, signal.SIGKILL)
    assert process.stdout.read() == b"alive"
    process.communicate()


def test_few_descriptors(tmp_path):
    import resource
    process = start(tmp_path, ACTOR, "ranks", "30", "steps", "5", "0", "only", "3", "kill", "9", "all", "await", "over",
                    preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64)))
    line = process.stderr.readline().decode()
    (tmp_path / "over").touch()
    done = finish(process)
    assert done.returncode == 137, done.stderr
    assert re.search(r"rank 3 \(pid \d+\) (was killed by SIGKILL|ended with unknown exit status)", line), line


@needs_root
def test_no_process_file_system(tmp_path):
    done = in_mounts(tmp_path, "mkdir a; mount -t tmpfs none /proc; export LD_LIBRARY_PATH=$L; \"$S\" run --out a/b -- \"$A\" steps 5 0 exit 3")
    if "LeakSanitizer" in done.stderr:
        pytest.skip("the sanitizer itself needs /proc")
    assert done.returncode == 3


def test_damaged_and_foreign_files_beside_the_recordings(tmp_path):
    (tmp_path / "a").mkdir()
    process = start(tmp_path, ACTOR, "sleep", "300", "steps", "5", "0", "exit", "3", options=["--out", "a"])
    wait_for(lambda: segments(tmp_path / "a", HOST), what="our recording")
    (tmp_path / "a" / "vm.1.1.0.ssr").write_bytes(b"")
    (tmp_path / "a" / "vm.2.1.0.ssr").write_bytes(b"SSEG0001" + bytes(1000))
    (tmp_path / "a" / "..ssr").write_bytes(b"x" * 300)
    (tmp_path / "a" / "x.99999999999999999999.1.0.ssr").write_bytes(b"x" * 300)
    (tmp_path / "a" / "x.1.2.3.4.ssr").mkdir()
    done = finish(process)
    assert done.returncode == 3 and "captured all 5 steps" in done.stderr
