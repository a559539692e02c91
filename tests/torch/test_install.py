# SPDX-License-Identifier: BSD-3-Clause
"""What pip makes of the package, away from the tree."""

import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest
import torch
from launching import RADDLE, ROOT, environment

# The library is in the package, and none of the tree's is taken.
LOOK = """
import raddle, raddle.torch, sys
assert raddle.__file__.startswith(sys.prefix), raddle.__file__
assert raddle.library_path().startswith(sys.prefix), raddle.library_path()
import torch, torch.distributed as dist
dist.init_process_group("raddle", rank=0, world_size=1, store=dist.HashStore())
one = torch.ones(3)
dist.all_reduce(one)
assert one.tolist() == [1, 1, 1]
print(raddle.version())
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> Path:
    """A Python that has the package, and PyTorch from where the tests have it."""
    folder = tmp_path_factory.mktemp("installed")
    # A tree of its own, as pip builds in the tree that it is given.
    tree = tmp_path_factory.mktemp("tree")
    shutil.copytree(ROOT / "python", tree / "python", ignore=shutil.ignore_patterns("build"))
    (tree / "build").mkdir()
    (tree / "build" / "release").symlink_to(RADDLE.parents[1])
    venv.create(folder, with_pip=True, system_site_packages=True)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    packages = folder / "lib" / version / "site-packages"
    (packages / "of_the_tests.pth").write_text(str(Path(torch.__file__).parents[1]) + "\n")
    python = folder / "bin" / "python"
    done = subprocess.run([python, "-m", "pip", "install", "--no-deps", str(tree / "python")],
                          text=True, capture_output=True, check=False, cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return python


def test_an_installed_package_brings_its_library(installed, tmp_path):
    surroundings = environment()
    del surroundings["PYTHONPATH"]
    done = subprocess.run([installed, "-c", LOOK], env=surroundings, text=True,
                          capture_output=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "0.1.0"
