# SPDX-License-Identifier: Apache-2.0
"""Callbacks and profilers for frameworks. Each module imports its framework when it is imported, and nothing else does."""
