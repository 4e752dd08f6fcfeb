# SPDX-License-Identifier: Apache-2.0
"""Callbacks and profilers for frameworks. Only the module of a framework imports that framework."""
