# SPDX-License-Identifier: Apache-2.0
"""Reads zstd, for which Python 3.11 has no module."""
import ctypes


def decompress(raw):
    """Returns the contents of one zstd frame that states its size."""
    zstd = ctypes.CDLL("libzstd.so.1")
    for function in (zstd.ZSTD_getFrameContentSize, zstd.ZSTD_decompress):
        function.restype = ctypes.c_size_t
    size = zstd.ZSTD_getFrameContentSize(raw, ctypes.c_size_t(len(raw)))
    out = ctypes.create_string_buffer(size)
    if zstd.ZSTD_decompress(out, ctypes.c_size_t(size), raw, ctypes.c_size_t(len(raw))) != size:
        raise ValueError("not a whole zstd frame")
    return out.raw
