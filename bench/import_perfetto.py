# SPDX-License-Identifier: Apache-2.0
"""Opens the trace in the browser version of Perfetto's trace processor and sums slices by category and name."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "tests", "conformance"))
import readers  # noqa: E402

rows, = readers.perfetto(sys.argv[1], ["SELECT category, name, count(*), sum(dur) FROM slice GROUP BY category, name"])
if not rows:
    sys.exit("no slices")
