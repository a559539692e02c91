# SPDX-License-Identifier: BSD-3-Clause
"""Python imports this at the start of each process of a PyTorch test file."""

import os

if os.environ.get("RADDLE_JUDGED"):
    import judged

    judged.register(os.environ["RADDLE_JUDGED"])
    judged.take_the_place_of(("gloo",), os.environ["RADDLE_JUDGED"])
