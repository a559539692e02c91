# SPDX-License-Identifier: BSD-3-Clause
"""A backend in another's place, for tests which name the other one.

PyTorch's tests choose by the backend's name what they run, and some ask for
gloo whatever the default backend is. take_the_place_of() makes such a
request one for another backend, in this process.
"""

import importlib


class Judged(str):
    """The name of a backend, which also answers to the name of a role.

    Bodies of tests compare the chosen backend with the names they know. What
    they do for the role is what the judged backend has to do.
    """

    role: str

    def __new__(cls, backend: str, role: str) -> "Judged":
        self = super().__new__(cls, backend)
        self.role = role
        return self

    def __eq__(self, other: object) -> bool:
        return other == self.role or str.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    # Sets of names are looked into by this value; they hold the role.
    def __hash__(self) -> int:
        return hash(self.role)


def register(backend: str) -> None:
    """Imports what makes PyTorch know the backend; gloo needs nothing."""
    if backend != "gloo":
        importlib.import_module(f"{backend}.torch")


def take_the_place_of(roles: tuple[str, ...], backend: str) -> None:
    """Makes requests for the backends that roles names requests for another."""
    import torch.distributed as dist
    from torch.testing._internal.common_distributed import DistTestCases

    _say_what_it_has(DistTestCases, backend)
    original = dist.Backend.__new__

    def named(cls: type, name: str) -> str:
        return original(cls, backend if str(name).lower() in roles else name)

    dist.Backend.__new__ = staticmethod(named)
    dist.Backend.default_device_backend_map["cpu"] = backend


def _say_what_it_has(cases: type, backend: str) -> None:
    for feature in ("plugin", "ddp", "subgroup"):
        cases.backend_feature[feature].add(backend)
