# SPDX-License-Identifier: Apache-2.0
"""stepscope: where does each step of a training run go?"""
