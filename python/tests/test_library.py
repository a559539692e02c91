# SPDX-License-Identifier: BSD-3-Clause
"""Finding and loading the library, without PyTorch."""

from __future__ import annotations

import ctypes
import re
import subprocess
import sys
from pathlib import Path

import raddle
from raddle import _library

TREE = Path(__file__).resolve().parents[2]
HEADERS = TREE / "include" / "raddle"


def _python(program: str, **environment: str) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True,
                          env={"PYTHONPATH": str(TREE / "python"), **environment})


def test_the_package_has_the_version_of_the_headers_and_of_the_library():
    header = (HEADERS / "version.h").read_text()
    assert f'RDL_VERSION "{raddle.__version__}"' in header
    assert raddle.version() == raddle.__version__


def test_a_library_that_is_not_there_is_named():
    done = _python("import raddle; raddle.version()", RADDLE_LIBRARY="/nowhere/libraddle.so")
    assert "OSError: libraddle.so was not found: it is at none of /nowhere/libraddle.so" \
        in done.stderr


def test_a_library_of_another_version_is_refused():
    done = _python("import raddle._library as l; l.VERSION = '9.9.9'; l.library()",
                   RADDLE_LIBRARY=raddle.library_path())
    assert "ImportError: raddle for Python is 9.9.9, and the library" in done.stderr
    assert "is 0.1.0: install them together" in done.stderr


def _enumerators(header: str, macro: str) -> list[str]:
    text = (HEADERS / header).read_text()
    body = re.search(rf"#define {macro}\(X\)(.*?)\n\n", text, re.S)
    assert body is not None
    return re.findall(r"X\((\w+),", body.group(1))


def test_statuses_dtypes_and_reductions_have_the_numbers_of_the_headers():
    for header, macro in (("status.h", "RDL_STATUS_MAP"), ("collective.h", "RDL_DTYPE_MAP"),
                          ("collective.h", "RDL_REDUCTION_MAP")):
        for number, name in enumerate(_enumerators(header, macro)):
            if hasattr(_library, name):
                assert getattr(_library, name) == number, name


def _fields(header: str, struct: str) -> list[str]:
    text = re.sub(r"/\*.*?\*/", "", (HEADERS / header).read_text(), flags=re.S)
    body = re.search(rf"typedef struct {struct} \{{(.*?)\}} {struct};", text, re.S)
    assert body is not None
    return re.findall(r"(\w+);", body.group(1))


def test_structs_have_the_fields_of_the_headers():
    for header, name, struct in (
            ("account.h", "rdl_account", _library.Account),
            ("account.h", "rdl_account_arena", _library.AccountArena),
            ("world.h", "rdl_world_options", _library.WorldOptions),
            ("collective.h", "rdl_call", _library.Call),
            ("collective.h", "rdl_work", _library.Work),
            ("group.h", "rdl_group", _library.Group)):
        assert [field[0] for field in struct._fields_] == _fields(header, name)
    assert ctypes.sizeof(_library.Group) == 12
