"""What to say of a training whose loss or parameters stopped being finite, and whether the data are to blame."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from deep500.measure.clock import Stopwatch
from deep500.networks.network import Network
from deep500.training.sampler import Sampler
from deep500.training.statistics import TrainingStatistics
from deep500.training.trainer import Trainer

__all__ = ["explain_divergence", "non_finite_parameter"]

#: How long a whole data set is searched for the sample that is to blame.
_LONGEST_SEARCH_S = 10.0


def explain_divergence(trainer: Trainer, statistics: TrainingStatistics) -> str | None:
    """Return what to say of a training that diverged, ``None`` for one that did not.

    Where the minibatch itself holds numbers that are not finite, the message says so.

    Args:
        trainer: What trained.
        statistics: What it measured.
    """
    for record in statistics.epochs:
        for step, loss in enumerate(record.training.step_losses if record.training else ()):
            if not math.isfinite(loss):
                why = _data_fault(trainer.train_sampler, record.epoch, step)
                return f"The training diverged: the loss is {loss} in epoch {record.epoch + 1}, step {step + 1}{why}."
    for test in statistics.all_evaluations:
        if test.result.loss is not None and not math.isfinite(test.result.loss):
            when = "before the training" if test.epoch < 0 else f"after epoch {test.epoch + 1}"
            inside = any(test is evaluation for evaluation in statistics.evaluations)
            when = f"after step {test.step}" if inside else when
            why = _set_fault(trainer.validation_sampler)
            return f"The training diverged: the test loss is {test.result.loss} {when}{why}."
    parameter = non_finite_parameter(trainer.executor.network)
    if parameter is not None and statistics.steps:
        # An activation that turns NaN into 0 can hide it from the loss.
        return f"The training diverged: the parameter {parameter!r} is not finite{_set_fault(trainer.train_sampler)}."
    return None


def non_finite_parameter(network: Network) -> str | None:
    """Return the first parameter with an element that is no finite number, ``None`` where all are."""
    for name in network.get_params():
        (value,) = network.fetch_tensors([name])
        if value.dtype.kind not in "iub":
            # NumPy's own test does not know the narrow dtypes, which all fit into float32.
            known = value if value.dtype.kind in "fc" else value.astype(np.float32)
            if not np.isfinite(known).all():
                return str(name)
    return None


def _data_fault(sampler: Sampler, epoch: int, position: int) -> str:
    """Return what is wrong with the minibatch that was trained on, if it is the sampler's very own."""
    try:
        first = position * sampler.batch_size
        samples = sampler.order(epoch)[first : first + sampler.batch_size]
        return _fault(sampler.dataset[samples], samples)
    except Exception:  # noqa: BLE001 - the data set's own code, asked for an explanation only
        return ""


def _set_fault(sampler: Sampler | None) -> str:
    if sampler is None:
        return ""
    watch = Stopwatch()
    for first in range(0, len(sampler.dataset), sampler.batch_size):
        samples = np.arange(first, min(first + sampler.batch_size, len(sampler.dataset)))
        try:
            fault = _fault(sampler.dataset[samples], samples)
        except Exception:  # noqa: BLE001 - the data set's own code, asked for an explanation only
            return ""
        if fault or watch.elapsed_s() > _LONGEST_SEARCH_S:
            return fault
    return ""


def _fault(batch: Any, samples: Any) -> str:
    for name, value in batch.items():
        array = np.asarray(value)
        if array.dtype.kind not in "iubOUS":
            is_finite = np.isfinite(array if array.dtype.kind in "fc" else array.astype(np.float32))
            bad = np.flatnonzero(~is_finite.reshape(len(array), -1).all(axis=1))
            if bad.size:
                return f"; the data are to blame: sample {int(samples[bad[0]])} of the data set has {name!r} not finite"
    return ""
