# SPDX-License-Identifier: BSD-3-Clause
"""Puts libraddle.so into the package: the one that RADDLE_LIBRARY names, else that of
build/release, which is built with cmake if it is not there."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py

try:
    from setuptools.command.bdist_wheel import bdist_wheel
except ImportError:  # before setuptools 70.1
    from wheel.bdist_wheel import bdist_wheel

TREE = Path(__file__).resolve().parent.parent
BUILT = TREE / "build" / "release" / "libraddle.so"
ADVICE = ("build it with `cmake --preset release && cmake --build build/release --target raddle`, "
          "or set RADDLE_LIBRARY to a libraddle.so of this version")


def build_library() -> None:
    if shutil.which("cmake") is None:
        raise SystemExit(f"raddle: {BUILT} is not there, and neither is cmake: {ADVICE}")
    for command in (["cmake", "--preset", "release"],
                    ["cmake", "--build", str(BUILT.parent), "--target", "raddle"]):
        try:
            subprocess.run(command, cwd=TREE, check=True)
        except (OSError, subprocess.CalledProcessError) as error:
            raise SystemExit(f"raddle: the library does not build ({error}): {ADVICE}") from error


def find_library() -> Path:
    told = os.environ.get("RADDLE_LIBRARY")
    if told:
        if not Path(told).exists():
            raise SystemExit(f"raddle: RADDLE_LIBRARY={told}: there is no such file")
        return Path(told)
    if not BUILT.exists():
        if not (TREE / "CMakePresets.json").exists():
            raise SystemExit(f"raddle: {TREE} is not raddle's source tree, so there is no library "
                             "to bundle: set RADDLE_LIBRARY to a libraddle.so of this version")
        build_library()
    return BUILT


class BuildWithLibrary(build_py):
    def run(self) -> None:
        super().run()
        target = Path(self.build_lib) / "raddle" / "lib"
        if not self.editable_mode:
            target.mkdir(parents=True, exist_ok=True)
            shutil.copy(find_library(), target / "libraddle.so")


class OfOnePlatform(Distribution):
    """A wheel for this processor, though nothing is compiled against Python."""

    def has_ext_modules(self) -> bool:
        return True


class WheelOfAnyPython(bdist_wheel):
    def get_tag(self) -> tuple[str, str, str]:
        return "py3", "none", super().get_tag()[2]


setup(cmdclass={"build_py": BuildWithLibrary, "bdist_wheel": WheelOfAnyPython},
      distclass=OfOnePlatform)
