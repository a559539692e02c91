# SPDX-License-Identifier: BSD-3-Clause
"""Raddle for Python: the library, found and loaded; raddle.torch is the backend."""

from raddle._library import Failure, library_path, version

__version__ = "0.1.0"

__all__ = ["Failure", "__version__", "library_path", "version"]
