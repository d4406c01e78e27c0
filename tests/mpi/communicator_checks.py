"""What holds for every communicator: functions that all ranks call together, each against an oracle in NumPy.

Under ``mpiexec -n N python -m tests.mpi.communicator_checks REPORT [TIMEOUT]`` each rank writes which checks it has
done, and which failed and why, into REPORT.RANK, a JSON object.
"""

from __future__ import annotations

import functools
import json
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from deep500.core.errors import CommunicationError
from deep500.core.tensor_descriptor import numpy_dtype
from deep500.distributed.buffers import DTYPES
from deep500.distributed.communicator import ANY_SOURCE, Communicator
from deep500.distributed.volume import part_sizes, traffic

Check = Callable[[Communicator], None]

#: Empty, one element, fewer than ranks, and one that no number of ranks divides.
LENGTHS = (0, 1, 3, 1009)

#: Elements of messages that take several chunks, the last of which is short.
LARGE = 300_007

#: Rounding of a sum of a few numbers, relative to the largest of them.
TOLERANCE = {"float64": 1e-14, "float32": 1e-6, "float16": 2e-3, "bfloat16": 1.6e-2}

COMBINE = {"sum": np.sum, "product": np.prod, "minimum": np.min, "maximum": np.max, "mean": np.mean}


def values(rank: int, length: int, dtype: str, seed: int = 0) -> Any:
    """Return what a rank has: every rank can say what every other one has."""
    random = np.random.default_rng([seed, rank, length])
    if numpy_dtype(dtype).kind in "iu":
        return random.integers(0, 4, length).astype(numpy_dtype(dtype))
    return random.uniform(-2, 2, length).astype(numpy_dtype(dtype))


def oracle(size: int, length: int, dtype: str, operation: str, seed: int = 0) -> Any:
    """Return the combination of all ranks' values, in float64 or in the integers' own dtype."""
    whole = np.stack([values(rank, length, dtype, seed) for rank in range(size)])
    if numpy_dtype(dtype).kind in "iu":
        return COMBINE[operation](whole, axis=0).astype(numpy_dtype(dtype))
    return COMBINE[operation](whole.astype(np.float64), axis=0)


def assert_close(actual: Any, expected: Any, dtype: str) -> None:
    if dtype in TOLERANCE:
        scale = max(1.0, float(np.abs(expected).max(initial=0)))
        error = float(np.abs(actual.astype(np.float64) - expected).max(initial=0))
        assert error <= TOLERANCE[dtype] * scale, f"{dtype}: off by {error:g}"
    else:
        np.testing.assert_array_equal(actual, expected)


def operations_of(dtype: str) -> list[str]:
    return ["sum", "product", "minimum", "maximum", *(["mean"] if dtype in TOLERANCE else [])]


def combinations(communicator: Communicator) -> list[tuple[str, str, int]]:
    cases = [(dtype, operation, 1009) for dtype in DTYPES for operation in operations_of(dtype)]
    cases += [("float32", "sum", length) for length in (*LENGTHS, LARGE)]
    return [*cases, ("float64", "mean", LARGE), ("bfloat16", "sum", LARGE), ("int64", "maximum", LARGE)]


def check_allreduce(communicator: Communicator) -> None:
    for dtype, operation, length in combinations(communicator):
        buffer = values(communicator.rank, length, dtype)
        communicator.allreduce(buffer, operation)
        assert_close(buffer, oracle(communicator.size, length, dtype, operation), dtype)


def check_allreduce_is_bitwise_equal_on_all_ranks(communicator: Communicator) -> None:
    for length in (1009, LARGE):
        buffer = values(communicator.rank, length, "float32")
        communicator.allreduce(buffer)
        gathered = np.empty(length * communicator.size, np.float32)
        communicator.allgather(buffer, gathered)
        rows = gathered.view(np.uint32).reshape(communicator.size, length)
        assert (rows == rows[0]).all()


def check_iallreduce(communicator: Communicator) -> None:
    for dtype, operation, length in combinations(communicator):
        buffer = values(communicator.rank, length, dtype)
        communicator.iallreduce(buffer, operation).wait()
        assert_close(buffer, oracle(communicator.size, length, dtype, operation), dtype)


def check_several_iallreduce_in_flight(communicator: Communicator) -> None:
    buffers = [values(communicator.rank, 5000 + seed, "float32", seed) for seed in range(12)]
    started = [communicator.iallreduce(buffer, "mean") for buffer in buffers]
    for work in reversed(started):
        work.wait()
        work.wait()  # once more does nothing
        assert work.test()
    for seed, buffer in enumerate(buffers):
        assert_close(buffer, oracle(communicator.size, 5000 + seed, "float32", "mean", seed), "float32")


def check_test_becomes_true(communicator: Communicator) -> None:
    for dtype in ("float32", "bfloat16"):
        buffer = values(communicator.rank, LARGE, dtype)
        work = communicator.iallreduce(buffer, "mean")
        while not work.test():
            time.sleep(0)
        assert_close(buffer, oracle(communicator.size, LARGE, dtype, "mean"), dtype)


def check_reduce(communicator: Communicator) -> None:
    for root in range(communicator.size):
        for dtype, operation, length in combinations(communicator)[:: 1 + communicator.size]:
            mine = values(communicator.rank, length, dtype)
            buffer = mine.copy()
            communicator.reduce(buffer, root, operation)
            if communicator.rank == root:
                assert_close(buffer, oracle(communicator.size, length, dtype, operation), dtype)
            else:
                np.testing.assert_array_equal(buffer, mine)


def check_broadcast(communicator: Communicator) -> None:
    for root in range(communicator.size):
        for dtype in DTYPES:
            for length in (*LENGTHS, LARGE) if dtype == "float32" else LENGTHS:
                buffer = values(communicator.rank, length, dtype)
                communicator.broadcast(buffer, root)
                np.testing.assert_array_equal(buffer, values(root, length, dtype))


def check_allgather(communicator: Communicator) -> None:
    for dtype in DTYPES:
        for length in (*LENGTHS, LARGE) if dtype == "float32" else LENGTHS:
            mine = values(communicator.rank, length, dtype)
            gathered = np.zeros(length * communicator.size, mine.dtype)
            communicator.allgather(mine, gathered)
            parts = [values(rank, length, dtype) for rank in range(communicator.size)]
            np.testing.assert_array_equal(gathered, np.concatenate(parts))


def check_reduce_scatter(communicator: Communicator) -> None:
    size = communicator.size
    for dtype, operation, length in combinations(communicator):
        whole = values(communicator.rank, length * size, dtype)
        before = whole.copy()
        part = np.zeros(length, whole.dtype)
        communicator.reduce_scatter(whole, part, operation)
        share = slice(communicator.rank * length, (communicator.rank + 1) * length)
        assert_close(part, oracle(size, length * size, dtype, operation)[share], dtype)
        np.testing.assert_array_equal(whole, before)


def check_barrier(communicator: Communicator) -> None:
    for _ in range(3):
        communicator.barrier()


def check_messages(communicator: Communicator) -> None:
    """Every pair of ranks, in both directions, with tags that come in the other order."""
    for source in range(communicator.size):
        for destination in range(communicator.size):
            if source == destination:
                continue
            for dtype, length in [("float32", 0), ("bfloat16", 7), ("int8", 1009), ("float64", LARGE)]:
                if communicator.rank == source:
                    works = [communicator.isend(values(source, length, dtype, tag), destination, tag) for tag in (1, 2)]
                    for work in works:
                        work.wait()
                elif communicator.rank == destination:
                    for tag in (2, 1):
                        buffer = np.zeros(length, numpy_dtype(dtype))
                        assert communicator.recv(buffer, source, tag) == source
                        np.testing.assert_array_equal(buffer, values(source, length, dtype, tag))


def check_any_source(communicator: Communicator) -> None:
    communicator.barrier()
    if communicator.rank == 0:
        before = communicator.ledger.snapshot()
        seen = set()
        for _ in range(communicator.size - 1):
            buffer = np.zeros(1, np.int64)
            source = communicator.recv(buffer, ANY_SOURCE, 7)
            assert buffer[0] == source
            seen.add(source)
        assert seen == set(range(1, communicator.size))
        received = (communicator.ledger.snapshot() - before)["recv"].received
        assert received == dict.fromkeys(range(1, communicator.size), 8)
    else:
        communicator.send(np.array([communicator.rank]), 0, 7)
    communicator.barrier()


def check_ring(communicator: Communicator) -> None:
    size, rank = communicator.size, communicator.rank
    carried, arriving = values(rank, LARGE, "float32"), np.zeros(LARGE, np.float32)
    total = carried.copy()
    for _ in range(size - 1):
        communicator.isendrecv(carried, (rank + 1) % size, arriving, (rank - 1) % size).wait()
        carried, arriving = arriving, carried
        total += carried
    assert_close(total, oracle(size, LARGE, "float32", "sum"), "float32")


def check_split(communicator: Communicator) -> None:
    size, rank = communicator.size, communicator.rank
    part = communicator.split(rank % 2, key=-rank)
    assert part is not None
    members = sorted((other for other in range(size) if other % 2 == rank % 2), reverse=True)
    assert (part.size, part.rank) == (len(members), members.index(rank))
    before = communicator.ledger.snapshot()
    buffer = np.full(4, float(rank))
    part.allreduce(buffer)
    np.testing.assert_array_equal(buffer, np.full(4, float(sum(members))))
    exchanged = communicator.ledger.snapshot() - before
    assert set(exchanged["allreduce"].sent) <= set(members)
    assert exchanged.sent_bytes == (0 if len(members) == 1 else _ring_bytes(part, 4, 8))

    within = part.split(0 if part.rank == 0 else None)
    assert (within is None) == (part.rank != 0)
    if within is not None:
        assert within.size == 1
    assert communicator.split(None) is None


def check_ledger(communicator: Communicator) -> None:
    size, rank = communicator.size, communicator.rank
    for algorithm in ("ring", "recursive_doubling"):
        communicator.algorithms["allreduce"] = algorithm
        before = communicator.ledger.snapshot()
        communicator.allreduce(np.ones(1003, np.float32))
        communicator.allreduce(np.ones(1003, np.float16))  # travels as float32
        totals = (communicator.ledger.snapshot() - before)["allreduce"]
        expected = traffic("allreduce", algorithm, rank, size, 1003, 4)
        assert (totals.calls, totals.payload_bytes) == (2, 1003 * 6)
        assert totals.sent == {peer: 2 * count for peer, count in expected.sent.items()}
        assert totals.received == {peer: 2 * count for peer, count in expected.received.items()}
    communicator.algorithms["allreduce"] = "ring"

    before = communicator.ledger.snapshot()
    right, left = (rank + 1) % size, (rank - 1) % size
    if size > 1:
        communicator.isendrecv(np.ones(10), right, np.ones(10), left).wait()
        totals = (communicator.ledger.snapshot() - before)["isendrecv"]
        assert (dict(totals.sent), dict(totals.received)) == ({right: 80}, {left: 80})


def check_refused_buffers(communicator: Communicator) -> None:
    """A buffer is refused on the rank that has it, before anything is sent, with what is accepted."""
    read_only = np.zeros(4)
    read_only.flags.writeable = False
    refused = {
        "shape (2, 2)": np.zeros((2, 2)),
        "shape ()": np.array(1.0),
        "not contiguous": np.zeros(8)[::2],
        "read-only": read_only,
        "bool": np.zeros(4, bool),
        "complex64": np.zeros(4, np.complex64),
        "foreign byte order": np.zeros(4, ">f4"),
        "a list": [1.0, 2.0],
        "requires a gradient": _Tensor(requires_grad=True),
        "on a device": _Tensor(device=2),
    }
    before = communicator.ledger.snapshot()
    for reason, buffer in refused.items():
        for call in (communicator.allreduce, communicator.iallreduce, communicator.broadcast):
            _assert_refused(functools.partial(call, buffer), reason, "Accepted")
    good = np.zeros(4)
    _assert_refused(lambda: communicator.allreduce(good, "average"), "'average'", "sum, mean")
    _assert_refused(lambda: communicator.allreduce(np.zeros(4, np.int32), "mean"), "int32", "Accepted")
    _assert_refused(lambda: communicator.broadcast(good, communicator.size), f"{communicator.size}", "root")
    _assert_refused(lambda: communicator.send(good, -2), "-2", "destination")
    _assert_refused(lambda: communicator.send(good, 0, tag=-1), "tag", "Accepted")
    _assert_refused(lambda: communicator.allgather(good, np.zeros(4 * communicator.size + 1)), "gathered", "pad")
    _assert_refused(lambda: communicator.reduce_scatter(good, np.zeros(3)), "part", "pad")
    _assert_refused(lambda: communicator.isendrecv(good, 0, good, 0), "overlap", "Accepted")
    assert communicator.ledger.snapshot() == before
    communicator.barrier()


def check_framework_tensors(communicator: Communicator) -> None:
    """Tensors of PyTorch and TensorFlow, seen in place, where these are installed."""
    for make in (_torch_tensors, _tensorflow_tensors):
        for tensor, dtype, read in make():
            mine = values(communicator.rank, 1009, dtype)
            tensor_view = tensor(mine)
            communicator.allreduce(tensor_view)
            assert_close(read(tensor_view), oracle(communicator.size, 1009, dtype, "sum"), dtype)
    _check_refused_torch(communicator)


def _torch_tensors() -> list[tuple[Any, str, Any]]:
    try:
        import torch
    except ImportError:
        return []
    floats = [
        (lambda a: torch.from_numpy(a.copy()), name, lambda t: t.numpy())
        for name in ("float64", "float32", "float16", "int32")
    ]
    half = (
        lambda a: torch.from_numpy(a.astype(np.float32)).to(torch.bfloat16),
        "bfloat16",
        lambda t: t.to(torch.float32).numpy(),
    )
    return [*floats, half]


def _tensorflow_tensors() -> list[tuple[Any, str, Any]]:
    if "tensorflow" not in sys.modules:  # takes seconds; the tests in one process load it
        return []
    import tensorflow as tf

    return [(lambda a: tf.constant(a.copy()), name, lambda t: t.numpy()) for name in ("float64", "float32", "bfloat16")]


def _check_refused_torch(communicator: Communicator) -> None:
    try:
        import torch
    except ImportError:
        return
    refused = {
        "requires a gradient": torch.zeros(4, requires_grad=True),
        "not contiguous": torch.zeros(8)[::2],
        "shape (2, 2)": torch.zeros(2, 2),
        "Accepted": torch.zeros(4, device="meta"),
        "bool": torch.zeros(4, dtype=torch.bool),
    }
    for reason, tensor in refused.items():
        _assert_refused(functools.partial(communicator.allreduce, tensor), reason, "Accepted")


class _Tensor:
    """A framework's tensor as far as it takes to be refused."""

    def __init__(self, requires_grad: bool = False, device: int = 1) -> None:
        self.requires_grad = requires_grad
        self._device = device

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._device, 0

    def __dlpack__(self) -> Any:
        raise BufferError("must not be asked for")


def _assert_refused(call: Callable[[], Any], *words: str) -> None:
    with pytest.raises(CommunicationError) as refusal:
        call()
    message = str(refusal.value)
    assert all(word in message for word in words), message
    assert "\n" not in message


def _ring_bytes(communicator: Communicator, length: int, item_bytes: int) -> int:
    parts, size, rank = part_sizes(length, communicator.size), communicator.size, communicator.rank
    return (2 * length - parts[(rank + 1) % size] - parts[(rank + 2) % size]) * item_bytes


CHECKS: dict[str, Check] = {
    name.removeprefix("check_"): check for name, check in list(globals().items()) if name.startswith("check_")
}


def main() -> None:
    """Run all checks as one rank of MPI, and write down what failed."""
    from deep500.distributed.launch_environment import create_communicator

    timeout_s = float(sys.argv[2]) if len(sys.argv) > 2 else None
    communicator = create_communicator("mpi", timeout_s=timeout_s)
    report = Path(f"{sys.argv[1]}.{communicator.rank}")
    done: list[str] = []
    for name, check in CHECKS.items():
        try:
            check(communicator)
        except BaseException:
            report.write_text(json.dumps({"done": done, "failed": name, "why": traceback.format_exc()}))
            raise  # which ends the other ranks, too: they may be in the middle of the check
        done.append(name)
    report.write_text(json.dumps({"done": done, "failed": "", "why": ""}))


if __name__ == "__main__":
    main()
