"""A network: a training step or an inference."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deep500.core.errors import MeasurementError, UnsupportedOperatorError
from deep500.frameworks import FRAMEWORKS
from deep500.measure.workload import Scalar, Score, Work, Workload, WorkloadSpec
from deep500.networks.graph_executor import GraphExecutor
from deep500.recipe.describe import describe
from deep500.recipe.resolve import call_with_arguments, find_executor, find_optimizer
from deep500.training.optimizer import Optimizer
from deep500.training.sampler import Batch
from deep500.workloads._accuracy import error_score
from deep500.workloads._frameworks import REFERENCE, framework_factors, open_executor
from deep500.workloads._networks import (
    ModelSetup,
    TrainingSettings,
    counted_flops,
    model_setup,
    output_bytes,
    structure_hash,
)

__all__ = ["model"]

#: A training step computes forward once and backward by two operands of each product: by convention three times the
#: floating-point operations of an inference. The update is not counted.
TRAINING_FLOPS = 3

#: Longest inference that the reference is asked for, in floating-point operations: about ten seconds of NumPy.
REFERENCE_FLOPS = 20e9


def model(spec: WorkloadSpec) -> Workload:
    """A training step of a model, or with mode=inference its inference. Both take one minibatch a run.

    The text is ``model:NAME[,option=value]...[@FRAMEWORK[:DEVICE]]`` with a model's name, or the path of an ``.onnx``
    file; without a framework the NumPy reference runs it. A training step is forward, backward and update.

    Options: ``mode`` (``training``, ``inference``), ``batch_size`` (64), ``dataset`` (a name: minibatches are then
    read within the runs; without it eight are made up before and fed in turn, as NumPy arrays), ``seed`` (0; of weights
    and data), ``loss`` (that of the network or data set, else cross-entropy), ``optimizer`` (``momentum``),
    ``learning_rate`` (0.001), ``native`` (True: the framework's own optimizer of that name; False: Deep500's, written
    once for all). Of a named model also ``dtype`` (``float32``), ``classes`` (10), ``shape`` (``1x28x28``) and the
    model's own arguments; of a file also each symbolic size of its inputs but the batch.

    The score of an inference is the L2 error of its outputs on the first minibatch, relative to the outputs of the
    NumPy reference; those of a training step are the errors of loss and gradient there, before any update.

    Raises:
        Deep500Error: The text names what does not exist, or what does not fit together.
    """
    return _Model(spec, model_setup(spec))


class _Model(Workload):
    """Runs of one network; see :func:`model`."""

    def __init__(self, spec: WorkloadSpec, setup: ModelSetup) -> None:
        self._setup = setup
        self._initialisation_hash = setup.network.weights_hash()
        self._executor = open_executor(spec, setup.network)
        self._optimizer: Optimizer | None = None
        self._step = self._executor.inference
        if setup.training is not None and setup.loss is not None:
            self._optimizer = _make_optimizer(self._executor, setup.training, setup.loss)
            self._step = self._optimizer.step
        self._batches = setup.batches.endless()
        self._outputs: Mapping[str, Any] = {}

    def run(self) -> None:
        """Train or infer one minibatch."""
        self._outputs = self._step(next(self._batches))

    def synchronize(self) -> None:
        """Wait until the device has finished."""
        self._executor.synchronize()

    @functools.cached_property
    def identity(self) -> Mapping[str, Any]:
        """The network, what it is fed and how it is trained."""
        setup = self._setup
        training = setup.training and {
            "loss": setup.loss,
            "optimizer": setup.training.optimizer,
            "learning_rate": setup.training.learning_rate,
        }
        return {
            "problem": "inference" if training is None else "training step",
            "model": setup.name,
            "arguments": describe(setup.arguments),
            "network_sha256": structure_hash(setup.network),
            "inputs": {name: str(descriptor) for name, descriptor in setup.inputs.items()},
            "batch_size": setup.batch_size,
            "dtype": self._dtype,
            "dataset": setup.dataset,
            "training": training,
        }

    @property
    def factors(self) -> Mapping[str, Scalar]:
        """Framework, version, device, settings, optimizer and where the minibatches come from."""
        factors = {**framework_factors(self._executor.framework, self._executor.device), "io": self._setup.batches.io}
        if self._optimizer is not None:
            kind = type(self._optimizer)
            factors["optimizer_class"] = f"{kind.__module__}.{kind.__qualname__}"
        return factors

    @property
    def data_hash(self) -> str:
        """SHA-256 over the minibatches, of a data set those of the first epoch."""
        return self._setup.batches.hash

    @property
    def initialisation_hash(self) -> str:
        """SHA-256 of the first weights."""
        return self._initialisation_hash

    @functools.cached_property
    def work(self) -> Work:
        """Samples; floating-point operations; and the bytes of parameters and inputs, of an inference outputs too.

        Of a training step the parameters count twice: they are read and written.
        """
        network, size = self._setup.network, self._setup.batch_size
        flops = counted_flops(network, size)
        fed = sum(descriptor.size_bytes or 0 for descriptor in self._setup.inputs.values())
        if self._optimizer is not None:
            moved = 2 * network.parameter_size_bytes + fed
            flops = None if flops is None else TRAINING_FLOPS * flops
        else:
            moved = network.parameter_size_bytes + fed + output_bytes(network, size)
        return Work(size, "sample", flops, moved, self._dtype)

    def scores(self) -> list[Score]:
        """Return how far the first results are from the reference's.

        Raises:
            MeasurementError: The loss of the last run, or a result, is not finite.
        """
        loss = self._setup.loss
        if loss is not None and loss in self._outputs:
            last = float(self._executor.to_numpy(self._outputs[loss]).reshape(-1)[0])
            if not math.isfinite(last):
                raise MeasurementError(
                    f"The loss of the last training step is {last}, so that the steps did not train. Use a "
                    f"learning_rate below {self._setup.training and self._setup.training.learning_rate:g}."
                )
        batch = self._scored_batch()
        try:
            expected = self._first_results(REFERENCE, None, batch)
        except UnsupportedOperatorError:  # the reference knows no such operator: nothing to compare with
            return []
        results = self._first_results(self._executor.framework, self._executor.device, batch)
        return [error_score(name, results[name], expected[name]) for name in expected]

    @property
    def _dtype(self) -> str:
        network = self._setup.network
        kinds = [*network.parameters.values(), *self._setup.inputs.values()]
        floating = [kind.dtype for kind in kinds if kind.dtype.startswith(("float", "bfloat", "complex"))]
        return [*floating, *(kind.dtype for kind in kinds), "float32"][0]

    def _scored_batch(self) -> Batch:
        """Return the first minibatch, or as many of its samples as the reference can be asked for."""
        batch = self._setup.batches.first()
        flops = counted_flops(self._setup.network, self._setup.batch_size)
        if not self._setup.has_free_batch or flops is None or flops <= REFERENCE_FLOPS:
            return batch
        samples = max(1, int(self._setup.batch_size * REFERENCE_FLOPS / flops))
        fixed = self._setup.network.inputs
        return {n: v if isinstance((fixed[n].shape or (0,))[0], int) else v[:samples] for n, v in batch.items()}

    def _first_results(self, framework: str, device: Any, batch: Batch) -> dict[str, list[NDArray[Any]]]:
        """Return what a framework computes from the first weights: outputs, or when training loss and gradients."""
        network, loss = self._setup.network, self._setup.loss
        executor = find_executor(framework)(network, device=device)
        if loss is None:
            outputs = executor.inference(batch)
            numbers = [array for name in network.outputs for array in _numbers(executor.value_to_numpy(outputs[name]))]
            return {"L2 relative error to the reference": numbers} if numbers else {}
        executor.network.train()
        outputs = executor.inference_and_backprop(batch, loss)
        gradients = executor.network.fetch_tensors([name for _, name in executor.network.gradient(loss)])
        return {
            "relative error of the first loss": [_copy(executor, outputs[loss])],
            "L2 relative error of the first gradient": gradients,
        }


def _copy(executor: GraphExecutor, tensor: Any) -> NDArray[Any]:
    return np.array(executor.to_numpy(tensor))


def _numbers(value: Any) -> list[NDArray[Any]]:
    """Return copies of the tensors of numbers in an output, which may be a list of them; texts are left out."""
    if isinstance(value, list):
        return [array for entry in value for array in _numbers(entry)]
    return [] if value is None or np.asarray(value).dtype.kind in "OUST" else [np.array(value)]


def _make_optimizer(executor: GraphExecutor, settings: TrainingSettings, loss: str) -> Optimizer:
    """Make an optimizer: the framework's own, where it has one of the class's name, or the portable one."""
    kind = find_optimizer(settings.optimizer)
    if settings.is_native:
        kind = getattr(FRAMEWORKS.get(executor.framework), kind.__name__, kind)
    arguments = {"learning_rate": settings.learning_rate}
    made: Optimizer = call_with_arguments(kind, "optimizer", (executor, loss), ((), arguments))
    return made
