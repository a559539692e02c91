# SPDX-License-Identifier: BSD-3-Clause
"""The process group: torch.distributed's methods as calls of the library.

PyTorch names some methods in two ways, and calls most of them in two or three: with
options, or with separate arguments. Each method here takes all of them.
"""

from __future__ import annotations

import re
from ctypes import Array, byref, c_size_t
from datetime import timedelta
from typing import Any, Sequence

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed import Work
from torch.distributed import distributed_c10d as c10d

from raddle import _library as rdl
from raddle.torch import _errors, _types
from raddle.torch._buffers import all_to_read, all_to_write, check_alike, check_list
from raddle.torch._buffers import check_sizes, inner, one, to_change, to_read, to_write
from raddle.torch._calls import Prepared
from raddle.torch._sites import here
from raddle.torch._transfers import Transfers
from raddle.torch._work import milliseconds
from raddle.torch._world import World


def _options(kind: type, **fields: Any) -> Any:
    """The options of a call whose arguments come one by one; None: the default."""
    made = kind()
    for name, value in fields.items():
        if value is not None:
            setattr(made, name, value)
    return made


class ProcessGroupRaddle(Transfers, dist.ProcessGroup):
    """One process group: a lane of the library, by the group's ranks and name."""

    def __init__(self, world: World, ranks: Sequence[int], name: str, rank: int,
                 timeout_ms: int, store: Any, is_default: bool):
        dist.ProcessGroup.__init__(self, rank, len(ranks))
        self._rank = rank
        self._store = store
        self._owns = is_default
        self._desc = "undefined"
        self._monitored: rdl.Group | None = None
        self._monitored_ended = 0
        self._closed = False
        Transfers.__init__(self, world, ranks, name, timeout_ms, is_default)

    # --- who we are -----------------------------------------------------------

    @property
    def group_name(self) -> str:
        return self._name

    pg_name = group_name

    @property
    def group_desc(self) -> str:
        return self._desc

    def getGroupName(self) -> str:
        return self._name

    def getGroupDesc(self) -> str:
        return self._desc

    def setGroupName(self, name: str) -> None:
        self._name = name

    def setGroupDesc(self, desc: str) -> None:
        self._desc = desc

    _set_group_name = setGroupName
    _set_group_desc = setGroupDesc

    def getBackendName(self) -> str:
        return "raddle"

    _get_backend_name = name = getBackendName

    def getRank(self) -> int:
        return self._rank

    def getSize(self) -> int:
        return self._size

    rank = getRank
    size = getSize

    def get_group_store(self) -> Any:
        return self._store

    @property
    def _device_types(self) -> list[torch.device]:
        return [torch.device("cpu")]

    def _get_backend(self, device: torch.device) -> ProcessGroupRaddle:
        if torch.device(device).type != "cpu":
            raise RuntimeError(f"raddle: the group has no backend for {device}, only for cpu")
        return self

    supports_splitting = True
    supports_coalescing = True
    supports_time_estimate = False

    def _set_default_timeout(self, timeout: timedelta) -> None:
        self._set_limit(milliseconds(timeout))

    set_timeout = _set_default_timeout

    def _set_sequence_number_for_group(self) -> None:
        """The library counts for itself."""

    # --- all to all members -----------------------------------------------------

    def barrier(self, opts: Any = None, timeout: timedelta | None = None) -> Work:
        if not isinstance(opts, c10d.BarrierOptions):
            opts = _options(c10d.BarrierOptions, timeout=timeout)
        return self._make(Prepared("barrier", (), None, []), opts)

    def broadcast(self, tensors: Any, opts: Any = None, root: int | None = None,
                  timeout: timedelta | None = None) -> Work:
        if not isinstance(opts, c10d.BroadcastOptions):
            opts = _options(c10d.BroadcastOptions, timeout=timeout,
                            rootRank=opts if root is None else root)
        tensor = one(tensors, "broadcast")
        kind = _types.element(tensor)
        buffer, finish = to_change(tensor)
        return self._make(Prepared("broadcast", (buffer.data_ptr(), buffer.numel() * kind.per,
                                                 kind.dtype, opts.rootRank),
                                   buffer, [tensor], finish), opts)

    def _all_reduce(self, tensor: Tensor, op: Any) -> Prepared:
        kind = _types.element(tensor)
        code = _types.reduction(op, tensor, kind)
        buffer, finish = to_change(tensor)
        at = buffer.data_ptr()
        return Prepared("all_reduce", (at, at, buffer.numel() * kind.per, kind.dtype, code),
                        buffer, [tensor], finish,
                        _types.factor(op, code))

    def allreduce(self, tensors: Any, opts: Any = None, op: Any = None,
                  timeout: timedelta | None = None) -> Work:
        if not isinstance(opts, c10d.AllreduceOptions):
            opts = _options(c10d.AllreduceOptions, timeout=timeout,
                            reduceOp=opts if op is None else op)
        return self._make(self._all_reduce(one(tensors, "all_reduce"), opts.reduceOp), opts)

    def allreduce_coalesced(self, tensors: list[Tensor], opts: Any = None) -> Work:
        if not isinstance(opts, c10d.AllreduceCoalescedOptions):
            opts = _options(c10d.AllreduceCoalescedOptions)
        op = opts.reduceOp
        return self._together([self._all_reduce(tensor, op) for tensor in tensors], opts)

    def reduce(self, tensors: Any, opts: Any = None, op: Any = None, root: int | None = None,
               timeout: timedelta | None = None) -> Work:
        if not isinstance(opts, c10d.ReduceOptions):
            opts = _options(c10d.ReduceOptions, reduceOp=op, timeout=timeout,
                            rootRank=opts if root is None else root)
        tensor = one(tensors, "reduce")
        kind = _types.element(tensor)
        code = _types.reduction(opts.reduceOp, tensor, kind)
        buffer, finish = to_change(tensor)
        at = buffer.data_ptr()
        return self._make(Prepared("reduce", (at, at, buffer.numel() * kind.per, kind.dtype, code,
                                              opts.rootRank),
                                   buffer, [tensor],
                                   finish if opts.rootRank == self._rank else None,
                                   _types.factor(opts.reduceOp, code)), opts)

    # --- gathering --------------------------------------------------------------

    def _all_gather_list(self, outputs: list[Tensor], tensor: Tensor) -> Prepared:
        kind = _types.element(tensor)
        check_list(outputs, self._size, tensor.dtype, "all_gather: outputs")
        if outputs[self._rank].numel() != tensor.numel():
            raise RuntimeError(f"raddle: all_gather: the input has {tensor.numel()} elements, and "
                               f"output {self._rank}, which it goes to, has "
                               f"{outputs[self._rank].numel()}")
        counts = [output.numel() * kind.per for output in outputs]
        source = to_read(tensor)
        whole, finish = all_to_write(outputs)
        if counts.count(counts[0]) == len(counts):
            return Prepared("all_gather",
                            (source.data_ptr(), whole.data_ptr(), counts[0], kind.dtype),
                            (source, whole), outputs, finish)
        sizes = (c_size_t * self._size)(*counts)
        return Prepared("all_gather_v", (source.data_ptr(), whole.data_ptr(), sizes, kind.dtype),
                        (source, whole), outputs, finish)

    def allgather(self, output_tensors: Any, input_tensors: Any, opts: Any = None,
                  timeout: timedelta | None = None) -> Work:
        if not isinstance(opts, c10d.AllgatherOptions):
            opts = _options(c10d.AllgatherOptions, timeout=timeout)
        return self._make(self._all_gather_list(inner(output_tensors, "all_gather: outputs"),
                                                one(input_tensors, "all_gather: input")), opts)

    def allgather_coalesced(self, output_lists: list[list[Tensor]], input_list: list[Tensor],
                            opts: Any = None) -> Work:
        if not isinstance(opts, c10d.AllgatherOptions):
            opts = _options(c10d.AllgatherOptions)
        if len(output_lists) != self._size:
            raise RuntimeError(f"raddle: all_gather_coalesced: {len(output_lists)} lists of "
                               f"outputs, and the group has {self._size} ranks")
        return self._together(
            [self._all_gather_list([outputs[i] for outputs in output_lists], tensor)
             for i, tensor in enumerate(input_list)], opts)

    def _all_gather(self, output: Tensor, tensor: Tensor) -> Prepared:
        kind = _types.element(tensor)
        check_alike([output], tensor.dtype, "all_gather")
        if output.numel() != tensor.numel() * self._size:
            raise RuntimeError(f"raddle: all_gather: the output has {output.numel()} elements; "
                               f"{self._size} ranks with {tensor.numel()} each make "
                               f"{tensor.numel() * self._size}")
        source = to_read(tensor)
        whole, finish = to_write(output)
        return Prepared("all_gather", (source.data_ptr(), whole.data_ptr(),
                                       source.numel() * kind.per, kind.dtype),
                        (source, whole), [output], finish)

    def all_gather_single(self, output: Tensor, input: Tensor, opts: Any = None,
                          timeout: timedelta | None = None) -> Work:
        if not isinstance(opts, c10d.AllgatherOptions):
            opts = _options(c10d.AllgatherOptions, timeout=timeout)
        return self._make(self._all_gather(output, input), opts)

    _allgather_base = all_gather_single

    def all_gather_single_coalesced(self, outputs: list[Tensor], inputs: list[Tensor],
                                    opts: Any = None) -> Work:
        if not isinstance(opts, c10d.AllgatherOptions):
            opts = _options(c10d.AllgatherOptions)
        return self._together([self._all_gather(output, tensor)
                               for output, tensor in zip(outputs, inputs, strict=True)], opts)

    allgather_into_tensor_coalesced = all_gather_single_coalesced

    def gather(self, output_tensors: Any, input_tensors: Any, opts: Any = None,
               root: int | None = None, timeout: timedelta | None = None) -> Work:
        if not isinstance(opts, c10d.GatherOptions):
            opts = _options(c10d.GatherOptions, timeout=timeout,
                            rootRank=opts if root is None else root)
        tensor = one(input_tensors, "gather: input")
        kind = _types.element(tensor)
        source, whole, finish, outputs = to_read(tensor), None, None, []
        if opts.rootRank == self._rank:
            outputs = inner(output_tensors, "gather: outputs")
            check_list(outputs, self._size, tensor.dtype, "gather: outputs")
            check_sizes(outputs, tensor, "gather: outputs")
            whole, finish = all_to_write(outputs)
        return self._make(Prepared("gather", (source.data_ptr(),
                                              None if whole is None else whole.data_ptr(),
                                              source.numel() * kind.per, kind.dtype,
                                              opts.rootRank),
                                   (source, whole), outputs, finish), opts)

    def scatter(self, output_tensors: Any, input_tensors: Any, opts: Any = None,
                root: int | None = None, timeout: timedelta | None = None) -> Work:
        if not isinstance(opts, c10d.ScatterOptions):
            opts = _options(c10d.ScatterOptions, timeout=timeout,
                            rootRank=opts if root is None else root)
        tensor = one(output_tensors, "scatter: output")
        kind = _types.element(tensor)
        whole = None
        if opts.rootRank == self._rank:
            inputs = inner(input_tensors, "scatter: inputs")
            check_list(inputs, self._size, tensor.dtype, "scatter: inputs")
            check_sizes(inputs, tensor, "scatter: inputs")
            whole = all_to_read(inputs)
        target, finish = to_write(tensor)
        return self._make(Prepared("scatter", (None if whole is None else whole.data_ptr(),
                                               target.data_ptr(), target.numel() * kind.per,
                                               kind.dtype, opts.rootRank),
                                   (whole, target), [tensor], finish), opts)

    # --- reducing and scattering ------------------------------------------------

    def reduce_scatter(self, output_tensors: Any, input_tensors: Any, opts: Any = None,
                       op: Any = None, timeout: timedelta | None = None) -> Work:
        if not isinstance(opts, c10d.ReduceScatterOptions):
            opts = _options(c10d.ReduceScatterOptions, timeout=timeout,
                            reduceOp=opts if op is None else op)
        tensor = one(output_tensors, "reduce_scatter: output")
        inputs = inner(input_tensors, "reduce_scatter: inputs")
        kind = _types.element(tensor)
        code = _types.reduction(opts.reduceOp, tensor, kind)
        check_list(inputs, self._size, tensor.dtype, "reduce_scatter: inputs")
        if inputs[self._rank].numel() != tensor.numel():
            raise RuntimeError(f"raddle: reduce_scatter: input {self._rank} has "
                               f"{inputs[self._rank].numel()} elements, and the output, which it "
                               f"goes to, has {tensor.numel()}")
        counts = [part.numel() * kind.per for part in inputs]
        whole = all_to_read(inputs)
        target, finish = to_write(tensor)
        even = counts.count(counts[0]) == len(counts)
        sizes: Any = counts[0] if even else (c_size_t * self._size)(*counts)
        return self._make(Prepared("reduce_scatter" if even else "reduce_scatter_v",
                                   (whole.data_ptr(), target.data_ptr(), sizes, kind.dtype, code),
                                   (whole, target), [tensor], finish,
                                   _types.factor(opts.reduceOp, code)), opts)

    def _reduce_scatter(self, output: Tensor, tensor: Tensor, op: Any) -> Prepared:
        kind = _types.element(output)
        code = _types.reduction(op, output, kind)
        check_alike([tensor], output.dtype, "reduce_scatter")
        if tensor.numel() != output.numel() * self._size:
            raise RuntimeError(f"raddle: reduce_scatter: the input has {tensor.numel()} elements; "
                               f"{self._size} ranks that get {output.numel()} each need "
                               f"{output.numel() * self._size}")
        whole = to_read(tensor)
        target, finish = to_write(output)
        return Prepared("reduce_scatter", (whole.data_ptr(), target.data_ptr(),
                                           target.numel() * kind.per, kind.dtype, code),
                        (whole, target), [output], finish, _types.factor(op, code))

    def reduce_scatter_single(self, output: Tensor, input: Tensor, opts: Any = None,
                              timeout: timedelta | None = None) -> Work:
        if not isinstance(opts, c10d.ReduceScatterOptions):
            opts = _options(c10d.ReduceScatterOptions, timeout=timeout)
        return self._make(self._reduce_scatter(output, input, opts.reduceOp), opts)

    _reduce_scatter_base = reduce_scatter_single

    def reduce_scatter_single_coalesced(self, outputs: list[Tensor], inputs: list[Tensor],
                                        opts: Any = None) -> Work:
        if not isinstance(opts, c10d.ReduceScatterOptions):
            opts = _options(c10d.ReduceScatterOptions)
        op = opts.reduceOp
        return self._together([self._reduce_scatter(output, tensor, op)
                               for output, tensor in zip(outputs, inputs, strict=True)], opts)

    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced

    # --- all to all -------------------------------------------------------------

    def all_to_all_single(self, output: Tensor, input: Tensor,
                          output_split_sizes: Sequence[int] = (),
                          input_split_sizes: Sequence[int] = (), opts: Any = None,
                          timeout: timedelta | None = None) -> Work:
        if not isinstance(opts, c10d.AllToAllOptions):
            opts = _options(c10d.AllToAllOptions, timeout=timeout)
        kind = _types.element(input)
        check_alike([output], input.dtype, "all_to_all")
        if output.numel() != input.numel() and not (input_split_sizes or output_split_sizes):
            raise RuntimeError(f"raddle: all_to_all: the input has {input.numel()} elements, the "
                               f"output {output.numel()}, and there are no split sizes")
        sent = self._rows(input, input_split_sizes, "input", kind.per)
        taken = self._rows(output, output_split_sizes, "output", kind.per)
        source = to_read(input)
        target, finish = to_write(output)
        at = source.data_ptr(), target.data_ptr()
        # Without sizes of its own every rank sends equal blocks; they need no table, which
        # goes round first otherwise.
        if len(input_split_sizes) == 0 and len(output_split_sizes) == 0:
            call = Prepared("all_to_all", (*at, sent[0], kind.dtype), (source, target), [output],
                            finish)
        else:
            call = Prepared("all_to_all_v", (at[0], sent, at[1], taken, kind.dtype),
                            (source, target), [output], finish)
        return self._make(call, opts)

    alltoall_base = all_to_all_single

    def _rows(self, tensor: Tensor, splits: Sequence[int], what: str, per: int) -> Array:
        """How many elements go to or come from each member: rows of the first dimension."""
        length = tensor.size(0) if tensor.dim() > 0 else 1
        if len(splits) == 0:
            if length % self._size != 0:
                raise RuntimeError(f"raddle: all_to_all: the {what} has {length} rows, which "
                                   f"cannot be shared equally by {self._size} ranks")
            splits = [length // self._size] * self._size
        if len(splits) != self._size:
            raise RuntimeError(f"raddle: all_to_all: {len(splits)} split sizes of the {what}, and "
                               f"the group has {self._size} ranks")
        if sum(splits) != length or min(splits) < 0:
            raise RuntimeError(f"raddle: all_to_all: the split sizes {list(splits)} of the {what} "
                               f"do not add up to its {length} rows")
        row = (tensor.numel() // length if length else 0) * per
        return (c_size_t * self._size)(*(split * row for split in splits))

    def alltoall(self, output_tensors: list[Tensor], input_tensors: list[Tensor],
                 opts: Any = None, timeout: timedelta | None = None) -> Work:
        if not isinstance(opts, c10d.AllToAllOptions):
            opts = _options(c10d.AllToAllOptions, timeout=timeout)
        if not input_tensors:
            raise RuntimeError("raddle: all_to_all: the list of inputs is empty")
        dtype = input_tensors[0].dtype
        kind = _types.element(input_tensors[0])
        check_list(input_tensors, self._size, dtype, "all_to_all: inputs")
        check_list(output_tensors, self._size, dtype, "all_to_all: outputs")
        sent = (c_size_t * self._size)(*(t.numel() * kind.per for t in input_tensors))
        taken = (c_size_t * self._size)(*(t.numel() * kind.per for t in output_tensors))
        source = all_to_read(input_tensors)
        target, finish = all_to_write(output_tensors)
        return self._make(Prepared("all_to_all_v", (source.data_ptr(), sent, target.data_ptr(),
                                                    taken, kind.dtype),
                                   (source, target), output_tensors, finish), opts)

    # --- seeing who is there ------------------------------------------------------

    def monitored_barrier(self, timeout: timedelta | None = None,
                          wait_all_ranks: bool = False) -> None:
        """A barrier on a lane of its own, so that its timeout ends nothing else. The
        sentence names all ranks that are missing, whatever wait_all_ranks says; what stands
        before it names one or all."""
        limit = self._timeout_ms if timeout is None else milliseconds(timeout)
        if self._monitored is None:
            self._monitored = self._open(f"{self._name}#monitored{self._monitored_ended}")
        how = rdl.Call(timeout_ms=limit)
        status = self._functions["barrier"](self.raddle_world.pointer, self._monitored,
                                            byref(how), here())
        if status:
            failure = dist.DistBackendError(
                self._missing(str(_errors.last(status)), limit, wait_all_ranks))
            # All members hear of it, so the next one is on another lane for all.
            self._lib.rdl_group_close(self.raddle_world.pointer, self._monitored)
            self._monitored = None
            self._monitored_ended += 1
            raise failure

    def _missing(self, sentence: str, limit: int, everyone: bool) -> str:
        """The sentence of a monitored barrier that failed, behind words of gloo's for which
        programs look: rank 0 names who is missing, others say that they are not."""
        late = re.search(r"waiting for ranks? ([0-9,]+)", sentence)
        if self._rank != 0:
            begin = (f"Rank {self._rank} successfully reached monitoredBarrier, but received "
                     "errors while waiting for send/recv from rank 0")
        elif late is None or limit <= 1:
            begin = "Rank 0 timed out in monitoredBarrier"
        else:
            ranks = [str(self._ranks.index(int(rank))) for rank in late[1].split(",")]
            who = f"Ranks {', '.join(ranks)}" if everyone else f"Rank {ranks[0]}"
            begin = f"{who} failed to pass monitoredBarrier"
        return f"{begin}: {sentence}"

    # --- groups out of this one ---------------------------------------------------

    def split_group(self, ranks: Sequence[int], timeout: timedelta | None = None,
                    opts: Any = None, group_name: str | None = None,
                    group_desc: str | None = None,
                    device_types: Any = None) -> ProcessGroupRaddle | None:
        """A group of some members, by their group ranks; None where this is none of them."""
        if self._rank not in ranks:
            return None
        for rank in ranks:
            self._check_peer(rank, "split_group")
        name = group_name or f"{self._name}:split:{','.join(map(str, ranks))}"
        limit = self._timeout_ms if timeout is None else milliseconds(timeout)
        store = dist.PrefixStore(f"{name}/", self._store)
        group = ProcessGroupRaddle(self.raddle_world, [self._ranks[rank] for rank in ranks], name,
                                   list(ranks).index(self._rank), limit, store, False)
        group.setGroupDesc(group_desc or f"{self._desc}:split")
        return group

    # --- the end ------------------------------------------------------------------

    def _lanes(self) -> list[rdl.Group]:
        more = [] if self._monitored is None else [self._monitored]
        return [*self._tags.values(), *more, self._handle]

    def shutdown(self) -> None:
        """Gives the group back; the default one leaves the job."""
        world = self.raddle_world
        if self._closed or world.pointer is None:
            return
        self._closed = True
        if self._owns:
            world.close()
            return
        for lane in self._lanes():
            self._lib.rdl_group_close(world.pointer, lane)

    def abort(self) -> None:
        """Ends the group on all its members: their calls fail and name this rank."""
        world = self.raddle_world
        if self._closed or world.pointer is None:
            return
        for lane in self._lanes():
            self._lib.rdl_group_revoke_at(world.pointer, lane, here())
        self.shutdown()
