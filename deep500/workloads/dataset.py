"""A data set: minibatches read by a sampler."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Mapping
from typing import Any

import numpy as np

from deep500.core.texts import shown
from deep500.datasets.dataset import Dataset
from deep500.datasets.loading import DATASETS, load_dataset
from deep500.measure.workload import Scalar, Work, Workload, WorkloadSpec
from deep500.recipe.resolve import call_with_arguments, find_sampler, named_parameters
from deep500.training.sampler import Sampler
from deep500.workloads._batches import SampledBatches
from deep500.workloads._frameworks import setting_factors
from deep500.workloads._options import Options, refuse_place

__all__ = ["dataset"]


def dataset(spec: WorkloadSpec) -> Workload:
    """Reading one minibatch of a data set's training part through a sampler.

    The text is ``dataset:NAME[,option=value]...``. Epochs follow one another without a pause: ordering the samples anew
    is part of the run that begins an epoch. A last minibatch of fewer samples is left out, so that each run reads as
    many.

    Options: ``batch_size`` (64), ``sampler`` (``shuffle``), ``seed`` (0), and the data set's own arguments. These are
    factors: what they change of the data, the data's hash tells.

    Raises:
        Deep500Error: The text names what does not exist, or what does not fit together.
    """
    refuse_place(spec)
    options = Options(spec)
    batch_size = options.count("batch_size", 64)
    sampler = options.text("sampler", "shuffle")
    seed = options.seed()
    parameters = inspect.signature(DATASETS.get(spec.name)).parameters
    arguments = options.rest([name for name in parameters if name not in ("input_node", "label_node")])
    options.finish()
    make_sampler = find_sampler("sampler", sampler)
    loaded, _ = load_dataset(spec.name, **arguments)
    wanted = {"seed": seed, "drop_last_batch": True}
    known = named_parameters(make_sampler) or wanted
    settings = {name: value for name, value in wanted.items() if name in known}

    def start() -> Sampler:
        made: Sampler = call_with_arguments(make_sampler, "sampler", (loaded, batch_size), ((), settings))
        return made

    identity = {"problem": "reading minibatches", "dataset": spec.name, "sampler": sampler, "batch_size": batch_size}
    factors = {f"dataset_{name}": shown(value) for name, value in arguments.items()}
    return _Reading(loaded, SampledBatches(start), {**identity, "seed": seed}, factors)


class _Reading(Workload):
    """Runs that each read one minibatch; see :func:`dataset`."""

    def __init__(
        self, loaded: Dataset, batches: SampledBatches, identity: Mapping[str, Any], factors: Mapping[str, Scalar]
    ) -> None:
        self._dataset = loaded
        self._batches = batches
        self._identity = identity
        self._factors = factors
        self._next = batches.endless()
        batches.first()  # an empty epoch is found here, not in a run

    def run(self) -> None:
        """Read the next minibatch."""
        next(self._next)

    @property
    def identity(self) -> Mapping[str, Any]:
        """The data set, and how it is gone through."""
        return self._identity

    @property
    def factors(self) -> Mapping[str, Scalar]:
        """What holds the data, its arguments, and the version of NumPy."""
        kind = type(self._dataset)
        name = f"{kind.__module__}.{kind.__qualname__}"
        return {"dataset_class": name, "numpy_version": np.__version__, **self._factors, **setting_factors()}

    @property
    def data_hash(self) -> str:
        """SHA-256 over the minibatches of the first epoch."""
        return self._batches.hash

    @functools.cached_property
    def work(self) -> Work:
        """Samples, and the bytes of a minibatch."""
        size = int(self._identity["batch_size"])
        sample_bytes = 0
        for descriptor in self._dataset.descriptors.values():
            elements = int(np.prod([d for d in descriptor.shape or () if isinstance(d, int)]))
            sample_bytes += elements * descriptor.numpy_dtype.itemsize
        return Work(size, "sample", None, size * sample_bytes, self._dataset.dtype)
