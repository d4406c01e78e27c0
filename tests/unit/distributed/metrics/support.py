"""A distributed training of threads, around which metrics are taken as a recipe takes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from deep500.distributed.communicators.local import run_threads
from deep500.distributed.distributed_optimizer import DistributedOptimizer
from deep500.measure.metric import TestMetric
from deep500.training.optimizers.gradient_descent import GradientDescent
from deep500.training.samplers.ordered import OrderedSampler
from deep500.training.trainer import Trainer
from tests.unit.distributed.support import RankExecutor
from tests.unit.training.support import clusters

__all__ = ["trained"]


def trained(make: Callable[[], TestMetric], scheme: str, ranks: int = 2, steps: int = 4) -> list[TestMetric]:
    """Train on thread ranks, each with its own samples, and return each rank's metric, which has ended."""

    def train(communicator: Any) -> TestMetric:
        executor, metric = RankExecutor(), make()
        optimizer = DistributedOptimizer(GradientDescent(executor), communicator, scheme)
        data = clusters(8 * (communicator.rank + 1))  # as many minibatches, of other samples
        sampler = OrderedSampler(data, 8 * (communicator.rank + 1) // 4)
        trainer = Trainer(sampler, None, executor, optimizer)
        metric.begin(trainer)
        trainer.run_loop(steps=steps, events=[metric] if hasattr(metric, "after_training") else [])
        optimizer.finish()
        metric.end(None)
        value = metric.measure(trainer, None)
        assert np.isfinite(value)
        return metric

    return run_threads(ranks, train)
