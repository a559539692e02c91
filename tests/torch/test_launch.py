# SPDX-License-Identifier: BSD-3-Clause
"""Jobs that raddle run and torchrun start, and where their ranks meet."""

import os
import socket
import subprocess

import pytest
from launching import environment, finish, finish_all, raddle_run, torchrun

# Rank 0 prints the digits of who takes part.
DIGITS = """
import torch, torch.distributed as dist, raddle.torch
dist.init_process_group("raddle")
digits = torch.tensor([10 ** dist.get_rank()])
dist.all_reduce(digits)
if dist.get_rank() == 0:
    print(digits.item(), flush=True)
dist.destroy_process_group()
"""


def _jobs_at_once(jobs: int) -> None:
    texts = finish_all([raddle_run(4, "-c", DIGITS)] * jobs, 60 * jobs)
    assert texts == ["1111\nstatus 0"] * jobs


def test_jobs_that_are_started_at_once_meet_at_ports_of_their_own():
    _jobs_at_once(3)


@pytest.mark.soak
def test_twenty_jobs_at_once_are_whole():
    """H06 b"""
    _jobs_at_once(20)


def test_a_program_starts_under_torchrun_too(tmp_path):
    program = tmp_path / "digits.py"
    program.write_text(DIGITS)
    assert "111" in finish(torchrun(3, str(program))).splitlines()


def test_gloo_meets_at_the_held_port_as_well():
    program = DIGITS.replace('"raddle"', '"gloo"')
    assert finish(raddle_run(2, "-c", program)).split() == ["11"]


def test_the_port_that_the_user_sets_is_the_one_that_is_taken():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    program = f"import os; assert os.environ['MASTER_PORT'] == '{port}'\n" + DIGITS
    assert finish(raddle_run(2, "-c", program), MASTER_PORT=str(port)).split() == ["11"]


def test_a_port_that_is_taken_ends_all_ranks_with_its_number():
    """H06 a: no rank waits for a store that cannot be."""
    with socket.socket() as taken:
        taken.bind(("", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        done = subprocess.run(raddle_run(4, "-c", DIGITS), env=environment(MASTER_PORT=port),
                              text=True, timeout=60, capture_output=True, check=False)
    assert done.returncode not in (0, 2)
    assert port in done.stderr
    assert "EADDRINUSE" in done.stderr


def test_a_job_in_a_rank_of_another_one_is_a_job_of_its_own():
    inner = raddle_run(2, "-c", DIGITS)
    outer = f"import os, subprocess; subprocess.run({inner!r}, check=True)"
    assert sorted(finish(raddle_run(2, "-c", outer)).split()) == ["11", "11"]


def test_under_torchrun_a_job_in_a_rank_has_a_store_of_its_own(tmp_path):
    inner = raddle_run(2, "-c", DIGITS)
    program = tmp_path / "outer.py"
    program.write_text(f"import subprocess\nsubprocess.run({inner!r}, check=True)\n")
    assert finish(torchrun(2, str(program))).split().count("11") == 2


def test_ranks_have_the_variables_that_torchrun_sets():
    names = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
    program = f"import os; print(*(os.environ[name] for name in {names!r}))"
    first, second = sorted(finish(raddle_run(2, "-c", program)).splitlines())
    assert first.split()[:5] == ["0", "2", "0", "2", "127.0.0.1"]
    assert second.split()[:5] == ["1", "2", "1", "2", "127.0.0.1"]
    assert first.split()[5] == second.split()[5] != os.environ.get("MASTER_PORT")
