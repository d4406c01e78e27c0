"""What a scheme cannot keep is told at its first snapshot, and what belongs to one optimizer serves no other."""

from __future__ import annotations

from typing import ClassVar

import pytest

from deep500.core.errors import TrainingError
from deep500.distributed.communicators.local import LocalCommunicator
from deep500.distributed.distributed_optimizer import DistributedOptimizer
from deep500.distributed.scheme import Scheme
from deep500.distributed.schemes.local_sgd import LocalSGD
from deep500.training.optimizers.gradient_descent import GradientDescent
from tests.unit.distributed.support import RankExecutor


class Forgetful(Scheme):
    kept: ClassVar[tuple[str, ...]] = ("residual",)


def optimizer(scheme: Scheme) -> DistributedOptimizer:
    return DistributedOptimizer(GradientDescent(RankExecutor()), LocalCommunicator(), scheme)


def test_what_is_to_be_kept_has_to_be_there() -> None:
    with pytest.raises(TrainingError, match="names 'residual' in its attribute 'kept'"):
        optimizer(Forgetful()).state()


def test_scheme_serves_one_optimizer() -> None:
    scheme = LocalSGD()
    optimizer(scheme)
    with pytest.raises(TrainingError, match="This LocalSGD belongs to an optimizer already"):
        optimizer(scheme)
