# SPDX-License-Identifier: Apache-2.0
"""Facts about this process that belong in each of its recordings."""
_known = {}


def keep(key, value):
    """Remembers the fact for tell_all()."""
    _known[key] = value


def tell(native, key, value):
    """Writes the fact into the current recording and into each one that starts later."""
    _known[key] = value
    native.metadata(key, value)


def tell_all(native):
    """Writes all facts so far: a recording has started."""
    for key, value in _known.items():
        native.metadata(key, value)
