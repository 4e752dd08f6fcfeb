# SPDX-License-Identifier: Apache-2.0
"""tools/check_house.py finds each thing that it is for, in a small tree that is broken once for each."""
import json
import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[2] / "tools/check_house.py"
FILES = {
    "src/base/banned.h": "#ifndef BANNED_H\n#define BANNED_H\n#endif\n",
    "src/base/list.h": "#ifndef LIST_H\n#define LIST_H\nstruct list { int count; };\nint list_count(const struct list *list);\n#endif\n",
    "src/base/list.c": '#include "base/list.h"\nstatic int list_read(const struct list *list)\n{\n\treturn list->count;\n}\n\n'
                       "int list_count(const struct list *list)\n{\n\treturn list_read(list);\n}\n",
    "include/own.h": "#ifndef OWN_H\n#define OWN_H\n#endif\n",
    "tests/test_list.py": "pass\n",
}
BOOLS = "#ifndef STATE_H\n#define STATE_H\n#include <stdbool.h>\nstruct state {\n\tbool is_one, is_two, is_three;\n\tstruct {\n\t\tbool is_inner;\n\t} inner;\n" \
        "\tbool (*is_call)(bool is_argument);\n\tbool *is_four; /* bool is_no_member; */\n\tbool is_five[2];\n%s};\n#endif\n"
STATIC = "static void fold(void)\n{\n}\n"


def tree(root, **more):
    for name, text in {**FILES, **more}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def checked(root):
    return subprocess.run([sys.executable, TOOL, "--root", root], capture_output=True, text=True, check=False)


def test_a_good_tree_passes(tmp_path):
    done = checked(tree(tmp_path))
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize("more, told", (
    ({f"src/base/file{number}.c": "" for number in range(46)}, "src/base: 47 .c files, more than 45"),
    ({"src/base/long.c": "\n" * 701}, "src/base/long.c: 701 lines, more than 700"),
    ({"tests/unit/test_long.c": "\n" * 1001}, "tests/unit/test_long.c: 1001 lines, more than 1000"),
    ({"src/base/other.h": "#ifndef OTHER_H\n#define OTHER_H\nbool other(void);\n#endif\n"}, "src/base/other.h: does not compile alone"),
    ({"src/base/a.h": "enum { FIRST };\n", "src/base/b.h": "enum { FIRST };\n"}, "headers do not compile together"),
    ({"src/base/other.c": "int list_next(void)\n{\n\treturn 0;\n}\n"}, "src/base/other.c: list_next() is declared in no header"),
    ({"src/base/other.h": "int list_next(void);\n", "src/base/next.c": "int list_next(void)\n{\n\treturn 0;\n}\n"},
     "src/base/next.c: list_next() is declared in src/base/other.h, not in next.h"),
    ({"src/model/list.c": "struct list {\n\tint other;\n};\n"}, "struct list is in src/base/list.h, src/model/list.c"),
    ({f"src/base/{name}.c": STATIC for name in "abc"}, "fold() is a static function of 3 files"),
    ({"src/base/state.h": BOOLS % "\tbool is_six : 1;\n"}, "src/base/state.h: struct state has 6 bools, more than 5"),
    ({"src/base/state.h": BOOLS % "\tbool is_six, is_seven;\n", "tools/bools.list": "state 6 options\n"}, "struct state has 7 bools, more than 6"),
    ({"src/base/state.h": BOOLS % "\tbool is_six;\n", "tools/bools.list": "state 7 options\n"}, "tools/bools.list: struct state has 6 bools, not 7"),
    ({"tools/bools.list": "absent 6 options\n"}, "tools/bools.list: struct absent has 0 bools, not 6"),
    ({"src/base/state.h": BOOLS % "\tbool is_six;\n", "tools/bools.list": "state 6\n"}, "tools/bools.list: state has no reason"),
    ({"python/stepscope/a.py": "from stepscope import b\n", "python/stepscope/b.py": "def f():\n    from stepscope.a import g\n"},
     "python/stepscope: modules import each other: a -> b -> a"),
    ({"src/store/history.h": "\n" * 201}, "src/store/history.h: 201 lines, more than 200"),
), ids=("folder", "length", "test", "alone", "together", "undeclared", "elsewhere", "tag", "static", "bools", "more bools",
         "fewer bools", "no such struct", "bools without a reason", "Python", "internal header"))
def test_each_fault_is_found(tmp_path, more, told):
    done = checked(tree(tmp_path, **more))
    assert done.returncode == 1 and told in done.stdout, done.stdout + done.stderr


def test_a_mutable_global_is_found(tmp_path):
    root = tree(tmp_path, **{"src/base/counter.c": "static const int limit = 3;\nint counter_next(void)\n{\n\tstatic int counter;\n\treturn counter += limit;\n}\n",
                             "src/base/counter.h": "int counter_next(void);\n"})
    build = root / "build-test"
    build.mkdir()
    subprocess.run(["cc", "-c", root / "src/base/counter.c", "-o", build / "counter.o"], check=True)
    entry = {"directory": str(build), "file": "../src/base/counter.c", "output": "counter.o"}
    (build / "compile_commands.json").write_text(json.dumps([entry]))
    done = checked(root)
    assert done.returncode == 1 and "src/base/counter.c: 1 mutable globals, more than 0 (tools/globals.list): counter" in done.stdout
    (root / "tools").mkdir()
    (root / "tools/globals.list").write_text("src/base/counter.c 1\n")
    assert checked(root).stdout == ""


def test_two_files_may_have_one_name_and_alternatives_one_tag(tmp_path):
    both = {f"src/base/inflate_{name}.c": "struct inflater {\n\tint state;\n};\n" + STATIC for name in ("isal", "zlib")}
    assert checked(tree(tmp_path, **both)).stdout == ""


def test_a_struct_may_have_few_bools_or_a_reason(tmp_path):
    root = tree(tmp_path, **{"src/base/state.h": BOOLS % ""})
    assert checked(root).stdout == ""
    (root / "src/base/state.h").write_text(BOOLS % "\tbool is_six;\n")
    (root / "tools").mkdir()
    (root / "tools/bools.list").write_text("# why\n\nstate 6 options, each by itself\n")
    assert checked(root).stdout == ""
