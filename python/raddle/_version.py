# SPDX-License-Identifier: BSD-3-Clause
"""The version of this Python code; the library must be of the same."""

VERSION = "0.1.0"
