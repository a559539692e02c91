# SPDX-License-Identifier: BSD-3-Clause
"""Raddle for Python: the library, found and loaded; raddle.torch is the backend."""

from raddle._library import library_path, version
from raddle._version import VERSION as __version__

__all__ = ["__version__", "library_path", "version"]
