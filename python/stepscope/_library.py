# SPDX-License-Identifier: Apache-2.0
"""The C library, loaded once per process: `stepscope run` says where it is, else it lies in this package."""
import ctypes
import os

_HERE = os.path.dirname(os.path.abspath(__file__))


def _load():
    path = os.environ.get("STEPSCOPE_LIBRARY") or os.path.join(_HERE, "libstepscope.so.0")
    loaded = ctypes.CDLL(path)
    loaded.stepscope_torch_problem.restype = ctypes.c_char_p
    loaded.stepscope_torch_probe_tensor.argtypes = [ctypes.c_uint64, ctypes.c_int, ctypes.POINTER(ctypes.c_int64), ctypes.c_int]
    loaded.stepscope_torch_probe_tensor.restype = None
    loaded.stepscope_torch_probe_inputs.argtypes = [ctypes.c_uint64, ctypes.c_uint64]
    loaded.stepscope_torch_probe_inputs.restype = None
    loaded.stepscope_torch_probe_check.argtypes = [ctypes.c_char_p]
    loaded.stepscope_torch_optimizer.argtypes = [ctypes.c_uint64]
    loaded.stepscope_torch_optimizer.restype = None
    loaded.stepscope_init.argtypes = [ctypes.c_char_p]
    loaded.stepscope_error.restype = ctypes.c_char_p
    loaded.stepscope_emit_metadata.argtypes = [ctypes.c_char_p, ctypes.c_char_p]
    return loaded


library = _load()
