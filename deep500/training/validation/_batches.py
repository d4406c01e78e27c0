"""Minibatches for a comparison: the same ones, step by step, for all that are compared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from deep500.core.counts import check_count
from deep500.core.errors import TrainingError
from deep500.core.texts import shown
from deep500.datasets.dataset import Dataset
from deep500.training.sampler import Sampler
from deep500.training.samplers.shuffle import ShuffleSampler

__all__ = ["batches_of"]

_ACCEPTED = (
    "accepted are a Sampler, a Dataset, a minibatch (a dictionary of arrays by input), a pair of dictionaries (inputs, "
    "labels), and a list of minibatches"
)


def batches_of(data: Any, steps: int, *, batch_size: int = 32, seed: int = 0) -> list[dict[str, Any]]:
    """Return as many minibatches as there are steps.

    A sampler is gone through from where it is, epoch after epoch, and afterwards is where it was. A list that is
    shorter than the steps is gone through again.

    Args:
        data: A sampler; a data set, which is shuffled; one minibatch, also as a pair of dictionaries of inputs and
            labels; or a list of minibatches.
        steps: How many.
        batch_size: Samples a minibatch of a data set.
        seed: Seed of its order.

    Raises:
        TrainingError: The data are none of these, or there is none.
    """
    check_count("steps", steps, least=1, error=TrainingError)
    if isinstance(data, Dataset):
        data = ShuffleSampler(data, min(batch_size, len(data)), seed)
    if isinstance(data, Sampler):
        return list(_sampled(data, steps))
    if isinstance(data, Mapping):
        listed: list[Any] = [data]
    elif isinstance(data, tuple) and len(data) == 2 and all(isinstance(part, Mapping) for part in data):
        listed = [{**data[0], **data[1]}]
    elif isinstance(data, Sequence) and not isinstance(data, (str, bytes)) and len(data):
        listed = list(data)
    else:
        raise TrainingError(f"The minibatches were given as {shown(data)}; {_ACCEPTED}.")
    for batch in listed:
        if not isinstance(batch, Mapping):
            raise TrainingError(f"A minibatch was given as {shown(batch)}; {_ACCEPTED}.")
    return [dict(listed[step % len(listed)]) for step in range(steps)]


def _sampled(sampler: Sampler, steps: int) -> Iterator[dict[str, Any]]:
    state = sampler.state()
    try:
        for _ in range(steps):
            if sampler.position >= len(sampler):
                sampler.reset()
            batch = next(sampler)
            yield {name: np.array(value) if isinstance(value, np.ndarray) else value for name, value in batch.items()}
    finally:
        sampler.restore(state)
