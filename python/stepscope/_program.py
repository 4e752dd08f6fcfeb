# SPDX-License-Identifier: Apache-2.0
"""Where the program `stepscope` is: beside this package, where it was built or installed, or in PATH."""
import os
import shutil
import sys

_PACKAGE = os.path.dirname(os.path.abspath(__file__))


def find():
    """Its path; None when it is not there."""
    for path in (os.path.join(_PACKAGE, "../../src/stepscope"), os.path.join(_PACKAGE, "../../../../bin/stepscope"),
                 os.path.join(os.path.dirname(sys.executable), "stepscope")):
        if os.access(path, os.X_OK) and os.path.isfile(path):
            return os.path.realpath(path)
    return shutil.which("stepscope")
