"""How far the replicas of a model are apart."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from deep500.core.errors import MeasurementError
from deep500.distributed.communicator import Communicator
from deep500.distributed.distributed_optimizer import DistributedOptimizer
from deep500.distributed.metrics._distributed_training import DistributedTrainingMetric, uncounted
from deep500.measure.metric import Direction, MetricKind

__all__ = ["ConsensusDistance"]


class ConsensusDistance(DistributedTrainingMetric):
    r"""Distance of the ranks' parameters from their mean, the last that was recorded.

    .. math:: \sqrt{\frac{1}{p} \sum_{r} \lVert x_r - \bar x \rVert^2}

    It is 0 while all replicas are the same. Recording it is a collective operation.
    Around a training it is recorded at the end, of this rank's parameters as the last step left them; its bytes are in
    no ledger of the training.

    Source: L. Kong, T. Lin, A. Koloskova, M. Jaggi, S. Stich, "Consensus control for decentralized deep learning",
    ICML 2021.
    """

    direction = Direction.LOWER
    kind = MetricKind.SCORE

    def __init__(self) -> None:
        """Start without a record."""
        self._distances: list[float] = []

    def _ended(self, optimizer: DistributedOptimizer) -> None:
        executor = optimizer.executor
        parameters = [executor.fetch(name).astype(np.float64).ravel() for name in executor.network.get_params()]
        own = np.concatenate(parameters) if parameters else np.zeros(0)
        distance = optimizer.together(lambda: _distance(own, uncounted(optimizer)), changes=False)
        self._distances.append(distance)

    @property
    def distances(self) -> tuple[float, ...]:
        """All distances, in the order in which they were recorded."""
        return tuple(self._distances)

    def record(self, parameters: NDArray[Any], communicator: Communicator) -> float:
        """Measure the distance now, on all ranks together.

        Args:
            parameters: This rank's parameters as one flat array; left as it is.
            communicator: What all ranks exchange through.

        Returns:
            The distance, the same on every rank.
        """
        self._distances.append(_distance(np.array(parameters, dtype=np.float64).ravel(), communicator))
        return self._distances[-1]

    def measure(self, inputs: Any, outputs: Any, reference_outputs: Any = None) -> float:
        """Return the last distance.

        Raises:
            MeasurementError: None was recorded.
        """
        if not self._distances:
            raise MeasurementError("ConsensusDistance was not measured: no distance was recorded.")
        return self._distances[-1]


def _distance(own: NDArray[Any], communicator: Communicator) -> float:
    mean = own.copy()
    communicator.allreduce(mean, "mean")
    square = np.array([np.square(own - mean).sum()])
    communicator.allreduce(square, "mean")
    return float(np.sqrt(square[0]))
