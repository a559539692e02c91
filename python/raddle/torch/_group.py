# SPDX-License-Identifier: BSD-3-Clause
"""The process group: torch.distributed's methods as calls of the library.

A blocking call is made on the caller's thread and returns a work that is done. Another
one takes its place in the group's order, and returns a work to wait for. Between
_start_coalescing and _end_coalescing calls are put into a batch.
"""

from __future__ import annotations

from ctypes import Array, addressof, byref, c_int, c_size_t, c_void_p
from datetime import timedelta
from typing import Any, Callable, Sequence

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed import distributed_c10d as c10d

from raddle import _library as rdl
from raddle.torch import _errors, _types
from raddle.torch._sites import here
from raddle.torch._work import DoneWork, Pending, RaddleWork, milliseconds
from raddle.torch._world import World

_UNSET = timedelta(milliseconds=-1)

_Finish = Callable[[], None] | None


def _options(kind: type, given: Any, **fields: Any) -> Any:
    """The options of a call, which come as such, or as separate arguments."""
    if isinstance(given, kind):
        return given
    made = kind()
    for name, value in fields.items():
        if value is not None:
            setattr(made, name, value)
    return made


def _one(tensors: Any, what: str) -> Tensor:
    """The only tensor of a list of one, as all calls but the lists have it."""
    if isinstance(tensors, Tensor):
        return tensors
    if len(tensors) != 1:
        raise RuntimeError(f"raddle: {what}: one tensor is wanted, and the list has "
                           f"{len(tensors)}")
    return tensors[0]


def _after(*steps: _Finish) -> _Finish:
    """One that does all of them."""
    todo = [step for step in steps if step is not None]
    if len(todo) < 2:
        return todo[0] if todo else None

    def finish() -> None:
        for step in todo:
            step()

    return finish


def _inward(tensor: Tensor) -> Tensor:
    """Contiguous, to be read."""
    return tensor if tensor.is_contiguous() else tensor.detach().contiguous()


def _outward(tensor: Tensor, read: bool = False) -> tuple[Tensor, _Finish]:
    """Contiguous, to be written, and what brings it into the tensor then. read: it is
    input too."""
    if tensor.is_contiguous():
        return tensor, None
    target = tensor.detach()
    copy = target.contiguous() if read else torch.empty_like(
        target, memory_format=torch.contiguous_format)
    return copy, lambda: _assign(target, copy)


def _assign(target: Tensor, source: Tensor) -> None:
    with torch.no_grad():
        target.copy_(source)


def _join(tensors: Sequence[Tensor]) -> Tensor:
    """All of them in one, in order, to be read; they themselves where they lie so."""
    if _types.adjacent(tensors):
        return tensors[0]
    return torch.cat([tensor.detach().reshape(-1) for tensor in tensors])


def _split(tensors: Sequence[Tensor]) -> tuple[Tensor, _Finish]:
    """One that takes all of them in order, to be written, and what hands it out then."""
    if _types.adjacent(tensors):
        return tensors[0], None
    counts = [tensor.numel() for tensor in tensors]
    whole = torch.empty(sum(counts), dtype=tensors[0].dtype)
    targets = [tensor.detach() for tensor in tensors]

    def finish() -> None:
        for target, part in zip(targets, whole.split(counts)):
            _assign(target, part.view(target.shape))

    return whole, finish


def _alike(tensors: Sequence[Tensor], dtype: torch.dtype, what: str) -> None:
    for tensor in tensors:
        _types.element(tensor)
        if tensor.dtype != dtype:
            raise ValueError(f"raddle: {what}: tensors of {dtype} and {tensor.dtype} in one call")


class ProcessGroupRaddle(dist.ProcessGroup):
    """One process group: a lane of the library, named by the group's name."""

    def __init__(self, world: World, ranks: Sequence[int], name: str, rank: int,
                 timeout_ms: int, store: Any, owns: bool):
        super().__init__(rank, len(ranks))
        self.raddle_world = world
        self._lib = world.lib
        self._ranks = list(ranks)
        self._rank = rank
        self._size = len(ranks)
        self._name = name
        self._desc = "undefined"
        self._owns = owns
        self._store = store
        self._timeout_ms = timeout_ms
        self._blocking = rdl.Call(timeout_ms=timeout_ms)
        self._blocking_at = addressof(self._blocking)
        self._batch: c_void_p | None = None
        self._batched: list[Any] = []
        self._handle = self._open(name)
        self._done = DoneWork()

    def _open(self, name: str) -> rdl.Group:
        handle = rdl.Group()
        ranks: Array = (c_int * self._size)(*self._ranks)
        _errors.check(self._lib.rdl_group_open(
            self.raddle_world.pointer, ranks, self._size, name.encode()[:63], byref(handle)))
        return handle

    # --- who we are ---------------------------------------------------------

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

    @property
    def supports_splitting(self) -> bool:
        return True

    # --- making a call ------------------------------------------------------

    def _limit(self, opts: Any) -> int:
        timeout = opts.timeout
        return self._timeout_ms if timeout == _UNSET else milliseconds(timeout)

    def _make(self, function: Any, arguments: tuple, opts: Any, keep: Any,
              result: list[Tensor], finish: _Finish = None, factor: float = 0.0) -> dist.Work:
        """Makes the library's call in the way that is wanted now. keep: what its buffers
        lie in."""
        if self._batch is not None:
            return self._add(function, arguments, keep, result, finish, factor)
        limit = self._timeout_ms if opts is None else self._limit(opts)
        if opts is None or opts.asyncOp:
            return self._issue(function, arguments, limit, keep, result, finish, factor)
        if limit == self._timeout_ms and factor == 0:
            call = self._blocking_at
        else:
            own = rdl.Call(timeout_ms=limit, factor=factor)
            call = addressof(own)
        status = function(self.raddle_world.pointer, self._handle, *arguments, call, here())
        if status:
            raise _errors.last(status)
        if finish is not None:
            finish()
        return self._done

    def _issue(self, function: Any, arguments: tuple, limit: int, keep: Any,
               result: list[Tensor], finish: _Finish, factor: float) -> RaddleWork:
        world = self.raddle_world
        handle = rdl.Work()
        call = rdl.Call(timeout_ms=limit, work=addressof(handle), factor=factor)
        status = function(world.pointer, self._handle, *arguments, addressof(call), here())
        if status:
            raise _errors.last(status)
        pending = Pending(world, handle, keep, finish, result)
        world.remember(pending)
        return RaddleWork(pending)

    def _add(self, function: Any, arguments: tuple, keep: Any, result: list[Tensor],
             finish: _Finish, factor: float) -> dist.Work:
        call = rdl.Call(timeout_ms=self._timeout_ms, batch=self._batch.value, factor=factor)
        status = function(self.raddle_world.pointer, self._handle, *arguments, addressof(call),
                          here())
        if status:
            raise _errors.last(status)
        self._batched.append((keep, result, finish))
        return self._done

    def _start_coalescing(self, device: torch.device | None = None) -> None:
        batch = c_void_p()
        _errors.check(self._lib.rdl_batch_begin(self.raddle_world.pointer, byref(batch)))
        self._batch, self._batched = batch, []

    def _end_coalescing(self, device: torch.device | None = None) -> dist.Work:
        return self._end_batch(True)

    def _end_batch(self, beside: bool) -> dist.Work:
        batch, self._batch = self._batch, None
        batched, self._batched = self._batched, []
        result = [tensor for _, tensors, _ in batched for tensor in tensors]
        finish = _after(*(step for _, _, step in batched))
        handle = rdl.Work()
        call = rdl.Call(work=addressof(handle) if beside else None)
        _errors.check(self._lib.rdl_batch_end(batch, byref(call)))
        if not beside:
            if finish is not None:
                finish()
            return self._done
        pending = Pending(self.raddle_world, handle, batched, finish, result)
        self.raddle_world.remember(pending)
        return RaddleWork(pending)

    def _together(self, opts: Any, calls: Callable[[], None]) -> dist.Work:
        """Makes several calls that start together."""
        if self._batch is not None:
            calls()
            return self._done
        self._start_coalescing()
        try:
            calls()
        except Exception:
            self._end_batch(False)
            raise
        return self._end_batch(opts.asyncOp)

    # --- all to all members -------------------------------------------------

    def barrier(self, opts: Any = None, timeout: timedelta | None = None) -> dist.Work:
        opts = _options(c10d.BarrierOptions, opts, timeout=timeout)
        return self._make(self._lib.rdl_barrier_at, (), opts, None, [])

    def broadcast(self, tensors: Any, opts: Any = None, root: int | None = None,
                  timeout: timedelta | None = None) -> dist.Work:
        if isinstance(opts, int):
            opts, root = None, opts
        opts = _options(c10d.BroadcastOptions, opts, rootRank=root, timeout=timeout)
        tensor = _one(tensors, "broadcast")
        kind = _types.element(tensor)
        buffer, finish = _outward(tensor, read=True)
        return self._make(self._lib.rdl_broadcast_at,
                          (buffer.data_ptr(), buffer.numel() * kind.per, kind.dtype,
                           opts.rootRank),
                          opts, buffer, [tensor], finish)

    def allreduce(self, tensors: Any, opts: Any = None, op: Any = None,
                  timeout: timedelta | None = None) -> dist.Work:
        if not isinstance(opts, c10d.AllreduceOptions):
            opts = _options(c10d.AllreduceOptions, None, reduceOp=opts if op is None else op,
                            timeout=timeout)
        return self._all_reduce(_one(tensors, "all_reduce"), opts)

    def _all_reduce(self, tensor: Tensor, opts: Any) -> dist.Work:
        kind = _types.element(tensor)
        op = opts.reduceOp
        code = _types.reduction(op, tensor)
        buffer, finish = _outward(tensor, read=True)
        at = buffer.data_ptr()
        return self._make(self._lib.rdl_all_reduce_at,
                          (at, at, buffer.numel() * kind.per, kind.dtype, code),
                          opts, buffer, [tensor], finish,
                          _types.factor(op) if code == rdl.PREMUL_SUM else 0.0)

    def allreduce_coalesced(self, tensors: list[Tensor], opts: Any = None) -> dist.Work:
        opts = _options(c10d.AllreduceCoalescedOptions, opts)

        def calls() -> None:
            for tensor in tensors:
                self._all_reduce(tensor, opts)

        return self._together(opts, calls)

    def reduce(self, tensors: Any, opts: Any = None, op: Any = None, root: int | None = None,
               timeout: timedelta | None = None) -> dist.Work:
        if isinstance(opts, int):
            opts, root = None, opts
        opts = _options(c10d.ReduceOptions, opts, rootRank=root, reduceOp=op, timeout=timeout)
        tensor = _one(tensors, "reduce")
        kind = _types.element(tensor)
        code = _types.reduction(opts.reduceOp, tensor)
        buffer, finish = _outward(tensor, read=True)
        at = buffer.data_ptr()
        return self._make(self._lib.rdl_reduce_at,
                          (at, at, buffer.numel() * kind.per, kind.dtype, code, opts.rootRank),
                          opts, buffer, [tensor], finish if opts.rootRank == self._rank else None,
                          _types.factor(opts.reduceOp))

    # --- gathering ----------------------------------------------------------

    def allgather(self, output_tensors: Any, input_tensors: Any, opts: Any = None,
                  timeout: timedelta | None = None) -> dist.Work:
        opts = _options(c10d.AllgatherOptions, opts, timeout=timeout)
        tensor = _one(input_tensors, "all_gather: input")
        outputs = output_tensors
        if not outputs or not isinstance(outputs[0], Tensor):
            if len(outputs) != 1:
                raise RuntimeError("raddle: all_gather: one list of outputs is wanted, and there "
                                   f"are {len(outputs)}")
            outputs = outputs[0]
        return self._all_gather_list(outputs, tensor, opts)

    def _all_gather_list(self, outputs: list[Tensor], tensor: Tensor, opts: Any) -> dist.Work:
        kind = _types.element(tensor)
        self._check_list(outputs, tensor.dtype, "all_gather: outputs")
        if outputs[self._rank].numel() != tensor.numel():
            raise RuntimeError(f"raddle: all_gather: the input has {tensor.numel()} elements, and "
                               f"output {self._rank}, which it goes to, has "
                               f"{outputs[self._rank].numel()}")
        counts = [output.numel() * kind.per for output in outputs]
        source = _inward(tensor)
        whole, finish = _split(outputs)
        if all(count == counts[0] for count in counts):
            return self._make(self._lib.rdl_all_gather_at,
                              (source.data_ptr(), whole.data_ptr(), counts[0], kind.dtype),
                              opts, (source, whole), outputs, finish)
        sizes = (c_size_t * self._size)(*counts)
        return self._make(self._lib.rdl_all_gather_v_at,
                          (source.data_ptr(), whole.data_ptr(), sizes, kind.dtype),
                          opts, (source, whole, sizes), outputs, finish)

    def _check_list(self, tensors: Sequence[Tensor], dtype: torch.dtype, what: str) -> None:
        if len(tensors) != self._size:
            raise RuntimeError(f"raddle: {what}: the list has {len(tensors)} tensors, and the "
                               f"group {self._size} ranks")
        _alike(tensors, dtype, what)

    def all_gather_single(self, output: Tensor, input: Tensor, opts: Any = None,
                          timeout: timedelta | None = None) -> dist.Work:
        opts = _options(c10d.AllgatherOptions, opts, timeout=timeout)
        kind = _types.element(input)
        _alike([output], input.dtype, "all_gather")
        if output.numel() != input.numel() * self._size:
            raise ValueError(f"raddle: all_gather: the output has {output.numel()} elements; "
                             f"{self._size} ranks with {input.numel()} each make "
                             f"{input.numel() * self._size}")
        source = _inward(input)
        whole, finish = _outward(output)
        return self._make(self._lib.rdl_all_gather_at,
                          (source.data_ptr(), whole.data_ptr(), source.numel() * kind.per,
                           kind.dtype),
                          opts, (source, whole), [output], finish)

    _allgather_base = all_gather_single

    def all_gather_single_coalesced(self, outputs: list[Tensor], inputs: list[Tensor],
                                    opts: Any = None) -> dist.Work:
        opts = _options(c10d.AllgatherOptions, opts)

        def calls() -> None:
            for output, tensor in zip(outputs, inputs, strict=True):
                self.all_gather_single(output, tensor, opts)

        return self._together(opts, calls)

    allgather_into_tensor_coalesced = all_gather_single_coalesced

    def allgather_coalesced(self, output_lists: list[list[Tensor]], input_list: list[Tensor],
                            opts: Any = None) -> dist.Work:
        opts = _options(c10d.AllgatherOptions, opts)
        if len(output_lists) != self._size:
            raise RuntimeError(f"raddle: all_gather_coalesced: {len(output_lists)} lists of "
                               f"outputs, and the group has {self._size} ranks")

        def calls() -> None:
            for index, tensor in enumerate(input_list):
                self._all_gather_list([outputs[index] for outputs in output_lists], tensor, opts)

        return self._together(opts, calls)

    def gather(self, output_tensors: Any, input_tensors: Any, opts: Any = None,
               root: int | None = None, timeout: timedelta | None = None) -> dist.Work:
        if isinstance(opts, int):
            opts, root = None, opts
        opts = _options(c10d.GatherOptions, opts, rootRank=root, timeout=timeout)
        tensor = _one(input_tensors, "gather: input")
        kind = _types.element(tensor)
        source = _inward(tensor)
        whole, finish, outputs = None, None, []
        if opts.rootRank == self._rank:
            outputs = output_tensors
            if outputs and not isinstance(outputs[0], Tensor):
                outputs = outputs[0]
            self._check_list(outputs, tensor.dtype, "gather: outputs")
            _same_sizes(outputs, tensor, "gather: outputs")
            whole, finish = _split(outputs)
        return self._make(self._lib.rdl_gather_at,
                          (source.data_ptr(), whole.data_ptr() if whole is not None else None,
                           source.numel() * kind.per, kind.dtype, opts.rootRank),
                          opts, (source, whole), list(outputs), finish)

    def scatter(self, output_tensors: Any, input_tensors: Any, opts: Any = None,
                root: int | None = None, timeout: timedelta | None = None) -> dist.Work:
        if isinstance(opts, int):
            opts, root = None, opts
        opts = _options(c10d.ScatterOptions, opts, rootRank=root, timeout=timeout)
        tensor = _one(output_tensors, "scatter: output")
        kind = _types.element(tensor)
        target, finish = _outward(tensor)
        whole = None
        if opts.rootRank == self._rank:
            inputs = input_tensors
            if inputs and not isinstance(inputs[0], Tensor):
                inputs = inputs[0]
            self._check_list(inputs, tensor.dtype, "scatter: inputs")
            _same_sizes(inputs, tensor, "scatter: inputs")
            whole = _join(inputs)
        return self._make(self._lib.rdl_scatter_at,
                          (whole.data_ptr() if whole is not None else None, target.data_ptr(),
                           target.numel() * kind.per, kind.dtype, opts.rootRank),
                          opts, (whole, target), [tensor], finish)

    # --- reducing and scattering --------------------------------------------

    def reduce_scatter(self, output_tensors: Any, input_tensors: Any, opts: Any = None,
                       op: Any = None, timeout: timedelta | None = None) -> dist.Work:
        opts = _options(c10d.ReduceScatterOptions, opts, reduceOp=op, timeout=timeout)
        tensor = _one(output_tensors, "reduce_scatter: output")
        inputs = input_tensors
        if inputs and not isinstance(inputs[0], Tensor):
            inputs = inputs[0]
        kind = _types.element(tensor)
        code = _types.reduction(opts.reduceOp, tensor)
        self._check_list(inputs, tensor.dtype, "reduce_scatter: inputs")
        if inputs[self._rank].numel() != tensor.numel():
            raise RuntimeError(f"raddle: reduce_scatter: input {self._rank} has "
                               f"{inputs[self._rank].numel()} elements, and the output, which it "
                               f"goes to, has {tensor.numel()}")
        counts = [part.numel() * kind.per for part in inputs]
        whole = _join(inputs)
        target, finish = _outward(tensor)
        if all(count == counts[0] for count in counts):
            function, sizes = self._lib.rdl_reduce_scatter_at, counts[0]
        else:
            function, sizes = self._lib.rdl_reduce_scatter_v_at, (c_size_t * self._size)(*counts)
        return self._make(function,
                          (whole.data_ptr(), target.data_ptr(), sizes, kind.dtype, code),
                          opts, (whole, target, sizes), [tensor], finish,
                          _types.factor(opts.reduceOp))

    def reduce_scatter_single(self, output: Tensor, input: Tensor, opts: Any = None,
                              timeout: timedelta | None = None) -> dist.Work:
        opts = _options(c10d.ReduceScatterOptions, opts, timeout=timeout)
        kind = _types.element(output)
        code = _types.reduction(opts.reduceOp, output)
        _alike([input], output.dtype, "reduce_scatter")
        if input.numel() != output.numel() * self._size:
            raise ValueError(f"raddle: reduce_scatter: the input has {input.numel()} elements; "
                             f"{self._size} ranks that get {output.numel()} each need "
                             f"{output.numel() * self._size}")
        whole = _inward(input)
        target, finish = _outward(output)
        return self._make(self._lib.rdl_reduce_scatter_at,
                          (whole.data_ptr(), target.data_ptr(), target.numel() * kind.per,
                           kind.dtype, code),
                          opts, (whole, target), [output], finish, _types.factor(opts.reduceOp))

    _reduce_scatter_base = reduce_scatter_single

    def reduce_scatter_single_coalesced(self, outputs: list[Tensor], inputs: list[Tensor],
                                        opts: Any = None) -> dist.Work:
        opts = _options(c10d.ReduceScatterOptions, opts)

        def calls() -> None:
            for output, tensor in zip(outputs, inputs, strict=True):
                self.reduce_scatter_single(output, tensor, opts)

        return self._together(opts, calls)

    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced

    # --- all to all ---------------------------------------------------------

    def all_to_all_single(self, output: Tensor, input: Tensor,
                          output_split_sizes: Sequence[int] = (),
                          input_split_sizes: Sequence[int] = (), opts: Any = None,
                          timeout: timedelta | None = None) -> dist.Work:
        opts = _options(c10d.AllToAllOptions, opts, timeout=timeout)
        kind = _types.element(input)
        _alike([output], input.dtype, "all_to_all")
        sent = self._rows(input, input_split_sizes, "input", kind.per)
        taken = self._rows(output, output_split_sizes, "output", kind.per)
        source = _inward(input)
        target, finish = _outward(output)
        return self._make(self._lib.rdl_all_to_all_v_at,
                          (source.data_ptr(), sent, target.data_ptr(), taken, kind.dtype),
                          opts, (source, target, sent, taken), [output], finish)

    alltoall_base = all_to_all_single

    def _rows(self, tensor: Tensor, splits: Sequence[int], what: str, per: int) -> Array:
        """How many elements go to or come from each member: rows of the first dimension."""
        length = tensor.size(0) if tensor.dim() > 0 else 1
        if len(splits) == 0:
            if length % self._size != 0:
                raise ValueError(f"raddle: all_to_all: the {what} has {length} rows, which cannot "
                                 f"be shared equally by {self._size} ranks")
            splits = [length // self._size] * self._size
        if len(splits) != self._size:
            raise ValueError(f"raddle: all_to_all: {len(splits)} split sizes of the {what}, and "
                             f"the group has {self._size} ranks")
        if sum(splits) != length or min(splits) < 0:
            raise ValueError(f"raddle: all_to_all: the split sizes {list(splits)} of the {what} "
                             f"do not add up to its {length} rows")
        row = (tensor.numel() // length if length else 0) * per
        return (c_size_t * self._size)(*(split * row for split in splits))

    def alltoall(self, output_tensors: list[Tensor], input_tensors: list[Tensor],
                 opts: Any = None, timeout: timedelta | None = None) -> dist.Work:
        opts = _options(c10d.AllToAllOptions, opts, timeout=timeout)
        kind = _types.element(input_tensors[0])
        dtype = input_tensors[0].dtype
        self._check_list(input_tensors, dtype, "all_to_all: inputs")
        self._check_list(output_tensors, dtype, "all_to_all: outputs")
        sent = (c_size_t * self._size)(*(t.numel() * kind.per for t in input_tensors))
        taken = (c_size_t * self._size)(*(t.numel() * kind.per for t in output_tensors))
        source = _join(input_tensors)
        target, finish = _split(output_tensors)
        return self._make(self._lib.rdl_all_to_all_v_at,
                          (source.data_ptr(), sent, target.data_ptr(), taken, kind.dtype),
                          opts, (source, target, sent, taken), list(output_tensors), finish)

    # --- between two --------------------------------------------------------

    def send(self, tensors: Any, dstRank: int, tag: int = 0) -> dist.Work:
        tensor = _one(tensors, "send")
        kind = _types.element(tensor)
        source = _inward(tensor)
        return self._make(self._lib.rdl_send_at,
                          (source.data_ptr(), source.numel() * kind.per, kind.dtype, dstRank),
                          None, source, [tensor])

    def recv(self, tensors: Any, srcRank: int, tag: int = 0) -> dist.Work:
        tensor = _one(tensors, "recv")
        kind = _types.element(tensor)
        target, finish = _outward(tensor)
        work = self._make(self._lib.rdl_receive_at,
                          (target.data_ptr(), target.numel() * kind.per, kind.dtype, srcRank),
                          None, target, [tensor], finish)
        if isinstance(work, RaddleWork):
            work._pending.source = srcRank
        return work

    # --- the end ------------------------------------------------------------

    def shutdown(self) -> None:
        """Gives the group back; with the last group of the world, leaves the job."""
        if self._handle is None:
            return
        handle, self._handle = self._handle, None
        world = self.raddle_world
        if self._owns:
            world.close()
        elif world.pointer is not None:
            self._lib.rdl_group_close(world.pointer, handle)

    def abort(self) -> None:
        """Ends the group on all its members: their calls fail with our name in the
        sentence."""
        world = self.raddle_world
        if self._handle is not None and world.pointer is not None:
            self._lib.rdl_group_revoke_at(world.pointer, self._handle, here())


def _same_sizes(tensors: Sequence[Tensor], like: Tensor, what: str) -> None:
    for index, tensor in enumerate(tensors):
        if tensor.numel() != like.numel():
            raise RuntimeError(f"raddle: {what}: tensor {index} has {tensor.numel()} elements, and "
                               f"this rank's {like.numel()}; all must be equal")
