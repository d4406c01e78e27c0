"""The communicator of NCCL through CuPy, with a stand-in for both: no GPU takes part."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from deep500.core.device import GPUDevice
from deep500.core.errors import CommunicationError, MissingDependencyError
from deep500.distributed.buffers import host_view
from deep500.distributed.communicator import Communicator
from deep500.distributed.communicators import _cupy_library, nccl
from deep500.distributed.communicators.local import LocalCommunicator, run_threads
from tests.mpi.communicator_checks import CHECKS
from tests.unit.distributed.communicators.fake_cupy import Array, Stream, fake_cupy

#: What NCCL does not have (tags, any source), and what is special to buffers of the host.
NOT_FOR_NCCL = {"messages", "any_source", "refused_buffers", "framework_tensors"}


class OfHostBuffers(nccl.NCCLCommunicator):
    """Takes the buffers of the suite for arrays on the GPU."""

    def _view(self, buffer: Any) -> Any:
        return host_view(buffer).view(Array)


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Any:
    fake = fake_cupy()
    monkeypatch.setattr(nccl, "cupy_with_nccl", lambda: fake)
    return fake


def run(count: int, check: Callable[[Communicator], None], kind: type[nccl.NCCLCommunicator] = OfHostBuffers) -> None:
    run_threads(count, lambda ranks: check(kind(ranks, device=GPUDevice(0), timeout_s=60)), timeout_s=60)


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("name", [name for name in CHECKS if name not in NOT_FOR_NCCL])
def test_suite(name: str, count: int, library: Any) -> None:
    run(count, CHECKS[name])


def on_gpu(length: int, dtype: Any = np.float32) -> Any:
    return np.ones(length, dtype).view(Array)


def test_arrays_of_cupy_are_exchanged_in_place(library: Any) -> None:
    def check(communicator: Communicator) -> None:
        buffer = on_gpu(5)
        communicator.allreduce(buffer, "mean")
        assert buffer.tolist() == [1.0] * 5
        assert communicator.capabilities.device_buffers
        assert "bfloat16" not in communicator.capabilities.dtypes

    run(2, check, nccl.NCCLCommunicator)


def test_stream_waits_for_what_the_current_one_was_given(library: Any) -> None:
    def check(communicator: nccl.NCCLCommunicator) -> None:
        communicator.broadcast(on_gpu(3))
        assert communicator._stream.given == ["wait_event", "record"]
        communicator.barrier()
        assert communicator._stream.given[2] == "synchronize"
        assert library.cupy.cuda.get_current_stream().given == ["record"]

    run_threads(1, lambda ranks: check(nccl.NCCLCommunicator(ranks)))


@pytest.mark.parametrize(
    ("buffer", "reason"),
    [
        (np.zeros(4), "cannot see in place"),
        (on_gpu(4, bool), "dtype bool"),
        (on_gpu(4).reshape(2, 2), "shape (2, 2)"),
        (on_gpu(8)[::2], "not contiguous"),
        (SimpleNamespace(requires_grad=True), "requires a gradient"),
    ],
)
def test_other_buffers_are_refused(buffer: Any, reason: str, library: Any) -> None:
    communicator = nccl.NCCLCommunicator(LocalCommunicator())

    with pytest.raises(CommunicationError, match="Accepted") as refusal:
        communicator.allreduce(buffer)
    assert reason in str(refusal.value)


def test_buffer_on_another_gpu_is_refused(library: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    communicator = nccl.NCCLCommunicator(LocalCommunicator())
    monkeypatch.setattr(Array, "device", SimpleNamespace(id=1))

    with pytest.raises(CommunicationError, match="on GPU 1"):
        communicator.allreduce(on_gpu(4))


def test_tags_are_refused(library: Any) -> None:
    communicator = nccl.NCCLCommunicator(LocalCommunicator())

    with pytest.raises(CommunicationError, match="without a tag"):
        communicator.send(on_gpu(1), 0, tag=3)
    with pytest.raises(CommunicationError, match="source -1"):
        communicator.recv(on_gpu(1), -1)


def test_peer_that_does_not_answer_is_an_error(library: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    communicator = nccl.NCCLCommunicator(LocalCommunicator(), timeout_s=0.01)
    monkeypatch.setattr(Stream, "ends", False)

    with pytest.raises(CommunicationError, match=r"allreduce on rank 0 was not done within 0\.01 s"):
        communicator.allreduce(on_gpu(4))
    assert library.nccl.aborted == 1


def test_error_of_nccl_is_translated(library: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    communicator = nccl.NCCLCommunicator(LocalCommunicator())
    monkeypatch.setattr(Stream, "ends", False)
    library.nccl.async_error = "NCCL_ERROR_REMOTE_ERROR"

    with pytest.raises(CommunicationError, match="failed in NCCL: NCCL_ERROR_REMOTE_ERROR"):
        communicator.iallreduce(on_gpu(4)).test()


def test_abort_ends_both(library: Any) -> None:
    with pytest.raises(CommunicationError, match=r"The data set is gone\."):
        nccl.NCCLCommunicator(LocalCommunicator()).abort("The data set is gone.")
    assert library.nccl.aborted == 1


@pytest.mark.parametrize("what", ["cupy", "nccl"])
def test_missing_library_is_named(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    imported = builtins.__import__
    fake = SimpleNamespace(__version__="13.6.0", cuda=SimpleNamespace(nccl=SimpleNamespace(available=False)))

    def importing(name: str, *arguments: Any) -> Any:
        if name == "cupy" and what == "nccl":
            return fake
        if name == "cupy.cuda" and what == "nccl":
            return fake.cuda
        if name.startswith("cupy"):
            raise ImportError("No module named 'cupy'")
        return imported(name, *arguments)

    monkeypatch.setattr(builtins, "__import__", importing)
    _cupy_library.cupy_with_nccl.cache_clear()
    with pytest.raises(MissingDependencyError, match=r"pip install 'deep500\[nccl\]'") as error:
        nccl.NCCLCommunicator(LocalCommunicator())
    assert ("needs CuPy" if what == "cupy" else "does not find") in str(error.value)
