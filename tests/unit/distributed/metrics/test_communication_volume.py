"""The volume of a test's runs is what the ledger counted in them, and nothing else."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from deep500.core.errors import MeasurementError
from deep500.distributed.communicators.simulated import SimulatedCommunicator
from deep500.distributed.metrics.communication_volume import CommunicationVolume


def test_only_runs_count() -> None:
    communicator = SimulatedCommunicator(4)
    metric = CommunicationVolume(communicator)
    for _ in range(3):
        communicator.allreduce(np.ones(4, np.float32))
        metric.begin(None)
        communicator.allreduce(np.ones(400, np.float32))
        metric.end(None)
        communicator.allreduce(np.ones(4, np.float32))

    assert metric.measure(None, None) == 3 * 2 * 3 * 400
    assert metric.volume["allreduce"].calls == 3
    assert dict(metric.volume["allreduce"].sent) == {1: 7200}


@pytest.mark.parametrize(("counted", "bytes_"), [("sent", 2400), ("received", 2400), ("payload", 1600)])
def test_what_is_counted(counted: str, bytes_: int) -> None:
    communicator = SimulatedCommunicator(4)
    metric = CommunicationVolume(communicator, counted)
    metric.begin(None)
    communicator.allreduce(np.ones(400, np.float32))
    metric.end(None)

    assert metric.measure(None, None) == bytes_


def test_communicator_of_a_trainer() -> None:
    communicator = SimulatedCommunicator(2)
    trainer = SimpleNamespace(optimizer=SimpleNamespace(communicator=communicator))
    metric = CommunicationVolume()
    assert metric.requires_inputs
    metric.begin(trainer)
    communicator.broadcast(np.ones(10, np.float32))
    metric.end(None)

    assert metric.measure(trainer, None) == 40


def test_fresh_copy_starts_empty() -> None:
    communicator = SimulatedCommunicator(2)
    metric = CommunicationVolume(communicator, "payload")
    metric.begin(None)
    communicator.broadcast(np.ones(10, np.float32))
    metric.end(None)

    assert metric.fresh().measure(None, None) == 0


def test_refusals() -> None:
    with pytest.raises(MeasurementError, match="no communicator"):
        CommunicationVolume().begin(object())
    with pytest.raises(MeasurementError, match="not begun"):
        CommunicationVolume(SimulatedCommunicator(2)).end(None)
    with pytest.raises(MeasurementError, match="'payload'"):
        CommunicationVolume(counted="all")
