"""How much a rank has sent and received."""

from __future__ import annotations

from typing import Any, Literal

from deep500.core.errors import MeasurementError
from deep500.core.texts import shown
from deep500.distributed.communicator import Communicator
from deep500.distributed.ledger import LedgerSnapshot
from deep500.distributed.metrics._distributed_training import not_begun
from deep500.measure.metric import Direction, MetricKind, TestMetric

__all__ = ["CommunicationVolume"]

#: What may be counted, and where a snapshot has it.
_COUNTED = ("sent", "received", "payload")


class CommunicationVolume(TestMetric):
    """Bytes that this rank exchanged in all runs of a test, counted exactly by the communicator's ledger.

    Only what happens between begin and end of a run counts.

    Example:
        >>> import numpy as np
        >>> from deep500.distributed.communicators.simulated import SimulatedCommunicator
        >>> communicator = SimulatedCommunicator(1024)
        >>> metric = CommunicationVolume(communicator)
        >>> metric.begin(None)
        >>> communicator.allreduce(np.ones(1024, np.float32))
        >>> metric.end(None)
        >>> metric.measure(None, None)
        8184.0
    """

    unit = "B"
    direction = Direction.LOWER
    kind = MetricKind.COST

    def __init__(
        self, communicator: Communicator | None = None, counted: Literal["sent", "received", "payload"] = "sent"
    ) -> None:
        """Say what is counted.

        Args:
            communicator: Whose ledger is read; by default that of the trainer's optimizer.
            counted: Bytes sent, or received, under the communicator's algorithms, or those of the callers' buffers.

        Raises:
            MeasurementError: Nothing of this name is counted.
        """
        if counted not in _COUNTED:
            raise MeasurementError(f"Received counted={counted!r}. Accepted are {', '.join(map(repr, _COUNTED))}.")
        self._communicator = communicator
        self._counted = counted
        self._start: LedgerSnapshot | None = None
        self._total = LedgerSnapshot()

    @property
    def requires_inputs(self) -> bool:
        """Whether it needs the trainer, to find the communicator."""
        return self._communicator is None

    @property
    def requires_outputs(self) -> bool:
        """False: it is read from the ledger."""
        return False

    @property
    def volume(self) -> LedgerSnapshot:
        """What was exchanged in the runs, by operation and peer."""
        return self._total

    def begin(self, inputs: Any) -> None:
        """Read the ledger before a run.

        Raises:
            MeasurementError: There is no communicator.
        """
        self._start = self._found(inputs).ledger.snapshot()

    def end(self, outputs: Any) -> None:
        """Read the ledger after a run.

        Raises:
            MeasurementError: The run was not begun.
        """
        if self._start is None or self._communicator is None:
            raise not_begun(self.name)
        run = self._communicator.ledger.snapshot() - self._start
        names = {*self._total.operations, *run.operations}
        self._total = LedgerSnapshot({name: self._total[name] + run[name] for name in sorted(names)})
        self._start = None

    def measure(self, inputs: Any, outputs: Any, reference_outputs: Any = None) -> float:
        """Return the bytes; see the class."""
        return float(getattr(self._total, f"{self._counted}_bytes"))

    def _found(self, inputs: Any) -> Communicator:
        if self._communicator is None:
            optimizer = getattr(inputs, "optimizer", inputs)
            found = getattr(optimizer, "communicator", None)
            if not isinstance(found, Communicator):
                raise MeasurementError(
                    f"CommunicationVolume found no communicator in {shown(inputs)}. Accepted is a trainer or optimizer "
                    "that is distributed (run the recipe with --ranks, or give it the key 'distributed'), or a "
                    "communicator as the metric's argument."
                )
            self._communicator = found
        return self._communicator
