# SPDX-License-Identifier: BSD-3-Clause
"""The examples check their own results; here they run, under each launcher."""

import pytest
from launching import ROOT, finish, raddle_run, torchrun

EXAMPLES = sorted(path.stem for path in (ROOT / "examples" / "torch").glob("*.py"))


def _path(name: str) -> str:
    return str(ROOT / "examples" / "torch" / f"{name}.py")


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_is_right_on_four_ranks(name):
    assert "the loss fell from" in finish(raddle_run(4, _path(name)))


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_is_right_under_torchrun(name):
    assert "the loss fell from" in finish(torchrun(2, _path(name)))


@pytest.mark.soak
@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_says_the_same_on_gloo(name):
    ours = finish(raddle_run(2, _path(name))).splitlines()
    gloos = finish(raddle_run(2, _path(name)), BACKEND="gloo").splitlines()
    assert gloos[-1] == ours[0]
