# SPDX-License-Identifier: Apache-2.0
"""Finds the program `stepscope`: as named by `stepscope run`, in the build or installation of this package or the
library, or on PATH."""
import os
import shutil
import sys

import stepscope

_PACKAGE = os.path.dirname(os.path.abspath(__file__))


def _beside_the_library():
    if stepscope.unavailable:
        return []
    library = os.path.dirname(os.path.realpath(stepscope._native.library_path()))
    return [os.path.join(library, place) for place in ("../stepscope", "../bin/stepscope", "../../bin/stepscope", "stepscope")]


def find():
    """Returns the path of the program, or None if it is missing."""
    for path in (os.environ.get("STEPSCOPE_PROGRAM"), os.path.join(_PACKAGE, "../../src/stepscope"),
                 os.path.join(_PACKAGE, "../../../../bin/stepscope"), os.path.join(os.path.dirname(sys.executable), "stepscope"),
                 os.path.join(sys.prefix, "bin", "stepscope"), *_beside_the_library()):
        if path and os.access(path, os.X_OK) and os.path.isfile(path):
            return os.path.realpath(path)
    return shutil.which("stepscope")
