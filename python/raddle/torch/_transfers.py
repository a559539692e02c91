# SPDX-License-Identifier: BSD-3-Clause
"""Send and receive: tags, whoever sends, and this rank itself.

Transfers between two ranks meet in the order in which both make them. Those of a tag do so
apart from all others: each tag is a lane of its own, by a name that both sides can tell.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict, deque
from ctypes import byref, c_int
from typing import Any

from torch import Tensor
from torch.distributed import Work

from raddle import _library as rdl
from raddle.torch import _errors, _ranges, _types
from raddle.torch._buffers import assign, one, to_read, to_write
from raddle.torch._calls import Calls, Prepared
from raddle.torch._sites import here
from raddle.torch._work import Outcome, Pending, RaddleWork

# So many tags have a lane open at a time; the one used longest ago is closed.
_TAGS_OPEN = 64
_NAP = 0.0001
_NAP_MOST = 0.002


class ToItself(Outcome):
    """Half of a transfer of a rank with itself, until the other half comes."""

    __slots__ = ("tensor", "settled")

    def __init__(self, tensor: Tensor, result: list[Tensor]):
        super().__init__(result)
        self.tensor = tensor
        self.settled = threading.Event()

    def settle(self, failure: Exception | None) -> None:
        super().settle(failure)
        self.settled.set()

    def wait(self, timeout_ms: int) -> None:
        if not self.settled.wait(timeout_ms / 1000 if timeout_ms else None):
            raise _errors.error(rdl.TIMEOUT, "raddle: a transfer of this rank with itself has no "
                                f"other half after {timeout_ms / 1000:.3g} s")
        if self.failure is not None:
            raise self.failure


class FromAnyone(Pending):
    """A receive from whichever rank sends first. It becomes an ordinary one when a
    sender is found, by who waits for it or by the world's watcher."""

    __slots__ = ("transfers", "tag", "call", "limit_ms", "deadline", "seeking", "site")

    def __init__(self, transfers: Transfers, tag: int, call: Prepared, limit_ms: int):
        super().__init__(transfers.raddle_world, None, call.keep, call.finish, call.result)
        self.transfers = transfers
        self.tag = tag
        self.call = call
        self.limit_ms = limit_ms
        self.deadline = time.monotonic() + limit_ms / 1000
        self.seeking = threading.Lock()
        self.site = here()

    def seek(self) -> bool:
        """One look for a sender; whether there is one, or there will be none."""
        with self.seeking:
            if self.handle is not None or self.done:
                return True
            try:
                self.handle = self.transfers._find_sender(self)
            except Exception as error:  # for whoever asks for the result
                self.settle(error)
            found = self.handle is not None
        if found and self.told:
            self.world.watcher.tell(self)
        if not found and not self.done and time.monotonic() > self.deadline:
            self.settle(self._late(self.limit_ms))
        return found or self.done

    def give_up(self) -> None:
        with self.seeking:
            if self.handle is None:
                self.settle(RuntimeError("raddle: a receive from any rank was pending when its "
                                         "group was destroyed"))
        super().give_up()

    def _late(self, milliseconds: int) -> Exception:
        return _errors.error(rdl.TIMEOUT, f"receive from any rank on {self.transfers._text()} at "
                             f"{self.site.decode()}: nobody has sent within "
                             f"{milliseconds / 1000:.3g} s")

    def test(self) -> bool:
        return super().test() if self.seek() else False

    def wait(self, timeout_ms: int) -> None:
        until = time.monotonic() + timeout_ms / 1000 if timeout_ms else None
        nap = _NAP
        while not self.seek():
            if until is not None and time.monotonic() > until:
                raise self._late(timeout_ms)
            time.sleep(nap)
            nap = min(2 * nap, _NAP_MOST)
        super().wait(timeout_ms)


class Transfers(Calls):
    """The part of a process group that sends and receives."""

    def __init__(self, *args: Any):
        super().__init__(*args)
        self._tags: OrderedDict[int, rdl.Group] = OrderedDict()
        # Between finding a sender and receiving from it nobody else may receive.
        self._receiving = threading.Lock()
        self._served = -1
        self._own_sends: dict[int, deque[ToItself]] = {}
        self._own_receives: dict[int, deque[ToItself]] = {}

    def _text(self) -> str:
        return f"group '{self._name}' {self._ranks}"

    def _lane_of(self, tag: int) -> rdl.Group:
        """The lane of a tag, opened at first use."""
        if tag == 0:
            return self._handle
        lane = self._tags.pop(tag, None)
        if lane is None:
            lane = self._open(f"{self._name}#{tag}")
            if len(self._tags) >= _TAGS_OPEN:
                self._close_one_tag()
        self._tags[tag] = lane
        return lane

    def _close_one_tag(self) -> None:
        for tag, lane in self._tags.items():
            status = self._lib.rdl_group_close(self.raddle_world.pointer, lane)
            if status != rdl.STATE:  # else a transfer is pending
                del self._tags[tag]
                return

    def _check_peer(self, peer: int, what: str) -> None:
        if not 0 <= peer < self._size:
            raise ValueError(f"raddle: {what}: rank {peer} is not in the group's 0 to "
                             f"{self._size - 1}")

    def _transfer(self, call: Prepared, tag: int) -> Work:
        if _ranges.wanted():
            with _ranges.of(call.name, [call.keep]):
                return self._transfer_now(call, tag)
        return self._transfer_now(call, tag)

    def _transfer_now(self, call: Prepared, tag: int) -> Work:
        lane = self._lane_of(tag)
        batch = self._batch
        if batch is not None and batch.thread == threading.get_ident():
            self._add(call, batch, self._timeout_ms, lane)
            return self._done
        return self._issue(call, lane, self._timeout_ms)

    # --- the calls ------------------------------------------------------------

    def send(self, tensors: Any, dstRank: int, tag: int = 0) -> Work:
        tensor = one(tensors, "send")
        kind = _types.element(tensor)
        self._check_peer(dstRank, "send")
        if dstRank == self.rank() and self._batch is None:
            return self._meet_itself(self._own_sends, self._own_receives, tensor, [tensor], tag)
        source = to_read(tensor)
        return self._transfer(
            Prepared("send", (source.data_ptr(), source.numel() * kind.per, kind.dtype, dstRank),
                     source, [tensor]), tag)

    def _receive(self, tensor: Tensor, peer: int) -> Prepared:
        kind = _types.element(tensor)
        target, finish = to_write(tensor)
        return Prepared("receive",
                        (target.data_ptr(), target.numel() * kind.per, kind.dtype, peer),
                        target, [tensor], finish)

    def recv(self, tensors: Any, srcRank: int, tag: int = 0) -> Work:
        tensor = one(tensors, "recv")
        self._check_peer(srcRank, "recv")
        if srcRank == self.rank() and self._batch is None:
            return self._meet_itself(self._own_receives, self._own_sends, tensor, [tensor], tag)
        call = self._receive(tensor, srcRank)
        with self._receiving:
            work = self._transfer(call, tag)
        if isinstance(work, RaddleWork):
            work._outcome.source = srcRank
        return work

    # --- from whoever sends ---------------------------------------------------

    def recv_anysource(self, tensors: Any, tag: int = 0) -> Work:
        """Of several that have sent the next one in the group's order is taken."""
        tensor = one(tensors, "recv")
        if self._batch is not None:
            raise RuntimeError("raddle: recv: a receive from any rank cannot be in a batch")
        call = self._receive(tensor, -1)
        if _ranges.wanted():
            with _ranges.of("recvAnySource", [call.keep]):
                return self._seek(call, tag)
        return self._seek(call, tag)

    def _seek(self, call: Prepared, tag: int) -> Work:
        receive = FromAnyone(self, tag, call, self._timeout_ms or 300_000)
        if not receive.test():
            self.raddle_world.watcher.seek(receive)
        return RaddleWork(receive)

    def _find_sender(self, receive: FromAnyone) -> rdl.Work | None:
        peer = c_int(-1)
        with self._receiving:
            lane = self._lane_of(receive.tag)
            status = self._lib.rdl_probe(self.raddle_world.pointer, lane, self._served,
                                         byref(peer))
            if status:
                raise _errors.last(status)
            if peer.value < 0:
                return None
            self._served = receive.source = peer.value
            call = receive.call
            arguments = (*call.arguments[:3], peer.value)
            return self._start(call._replace(arguments=arguments), lane, receive.limit_ms)

    # --- with itself ----------------------------------------------------------

    def _meet_itself(self, mine: dict[int, deque[ToItself]], others: dict[int, deque[ToItself]],
                     tensor: Tensor, result: list[Tensor], tag: int) -> Work:
        """The k-th send to oneself meets the k-th receive from oneself."""
        half = ToItself(tensor, result)
        half.source = self.rank()
        with self._receiving:
            waiting = others.get(tag)
            if not waiting:
                mine.setdefault(tag, deque()).append(half)
                return RaddleWork(half)
            other = waiting.popleft()
        sent, taken = (half, other) if mine is self._own_sends else (other, half)
        failure = self._copy(sent.tensor, taken.tensor)
        half.settle(failure)
        other.settle(failure)
        return RaddleWork(half)

    @staticmethod
    def _copy(source: Tensor, target: Tensor) -> Exception | None:
        if source.numel() != target.numel() or source.dtype != target.dtype:
            return RuntimeError(f"raddle: this rank sends itself {source.numel()} elements of "
                                f"{source.dtype} and expects {target.numel()} of {target.dtype}")
        assign(target.detach(), source.detach().reshape(target.shape))
        return None
