"""From the text of a ``model:`` workload to its network, its loss and what it is fed."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx

from deep500.core.errors import InvalidInputError, InvalidNetworkError, MeasurementError
from deep500.core.tensor_descriptor import STRING, Dimension, TensorDescriptor
from deep500.datasets.dataset import Dataset
from deep500.datasets.loading import load_dataset
from deep500.measure.workload import WorkloadSpec
from deep500.networks.creation import MODELS, create_model
from deep500.networks.flops import count_flops
from deep500.networks.network import Network
from deep500.recipe.resolve import find_model
from deep500.training.sampler import Batch
from deep500.training.samplers.shuffle import ShuffleSampler
from deep500.workloads._batches import Batches, SampledBatches, SyntheticBatches, synthetic_batch
from deep500.workloads._options import Options

__all__ = ["ModelSetup", "TrainingSettings", "counted_flops", "model_setup", "output_bytes", "structure_hash"]

#: Samples a minibatch where neither the text nor the network says it.
DEFAULT_BATCH_SIZE = 64

#: Minibatches that are made up and fed in turn: more than one, so that nothing is kept from one run to the next.
SYNTHETIC_BATCHES = 8

#: Small, so that any number of steps on made-up data keeps the loss finite.
DEFAULT_LEARNING_RATE = 1e-3


@dataclass(frozen=True)
class TrainingSettings:
    """How a model is trained.

    Attributes:
        optimizer: The optimizer's name.
        learning_rate: Its step size.
        is_native: Whether the framework's own optimizer of that name is used where it has one.
    """

    optimizer: str
    learning_rate: float
    is_native: bool


@dataclass(frozen=True)
class ModelSetup:
    """What a ``model:`` workload runs, before any framework has seen it.

    Attributes:
        name: The model's name; for a file, that of the graph in it.
        network: The network.
        arguments: The arguments of the model that were given.
        training: How it is trained; ``None`` for inference.
        loss: Name of the output that training makes small; ``None`` for inference.
        batch_size: Samples a minibatch.
        inputs: Dtype and shape of what is fed.
        has_free_batch: Whether the network takes minibatches of any size, and no other size is open.
        dataset: Name of the data set; ``None`` for made-up minibatches.
        batches: The minibatches.
    """

    name: str
    network: Network
    arguments: Mapping[str, Any]
    training: TrainingSettings | None
    loss: str | None
    batch_size: int
    inputs: Mapping[str, TensorDescriptor]
    has_free_batch: bool
    dataset: str | None
    batches: Batches


def model_setup(spec: WorkloadSpec) -> ModelSetup:
    """Build the network of a ``model:`` workload and its minibatches.

    Raises:
        Deep500Error: The text names what does not exist, or what does not fit together.
    """
    options = Options(spec)
    is_training = options.choice("mode", "training", ("training", "inference")) == "training"
    batch_size = options.count("batch_size", None)
    dataset_name = options.text("dataset", None)
    seed = options.seed()
    training = _training_settings(options) if is_training else None
    wanted_loss = options.text("loss", None) if is_training else None
    is_file = Path(spec.name).suffix == ".onnx"
    network, dataset, arguments = (_read if is_file else _create)(spec, options, dataset_name, seed)
    loss = _with_loss(network, wanted_loss, dataset) if is_training else None
    names = list(network.inputs) if is_training else _needed_inputs(network)
    sizes, batch_size, has_free_batch = _input_sizes(network, names, batch_size, options)
    options.finish()
    inputs = {name: TensorDescriptor(network.inputs[name].dtype, shape) for name, shape in sizes.items()}
    return ModelSetup(
        name=network.name if is_file else spec.name,
        network=network,
        arguments=arguments,
        training=training,
        loss=loss,
        batch_size=batch_size,
        inputs=inputs,
        has_free_batch=has_free_batch,
        dataset=dataset_name,
        batches=_synthetic(network, sizes, seed)
        if dataset is None
        else _sampled(spec, dataset, inputs, batch_size, seed),
    )


def counted_flops(network: Network, batch_size: int) -> int | None:
    """Return the floating-point operations of one inference, ``None`` when not all of them can be counted."""
    try:
        count = count_flops(network, batch_size)
    except InvalidNetworkError:  # they depend on a size that is not known before the run
        return None
    return None if count.uncounted else count.total


def output_bytes(network: Network, batch_size: int) -> int:
    """Return the bytes that the outputs of one inference have at least: sizes that are not known count 1."""
    total = 0
    for descriptor in network.outputs.values():
        if not isinstance(descriptor, TensorDescriptor):  # of a list, not even the number of tensors is known
            continue
        sizes = [
            size if isinstance(size, int) else 1 if axis else batch_size
            for axis, size in enumerate(descriptor.shape or ())
        ]
        total += TensorDescriptor(descriptor.dtype, sizes).size_bytes or 0
    return total


def structure_hash(network: Network) -> str:
    """Return the SHA-256 of a network without the values that training changes, which have a hash of their own."""
    proto = network.to_proto()
    changing = {*network.parameters, *network.states}
    for tensor in proto.graph.initializer:
        if tensor.name in changing:
            tensor.CopyFrom(onnx.TensorProto(name=tensor.name, data_type=tensor.data_type, dims=tensor.dims))
    return hashlib.sha256(proto.SerializeToString(deterministic=True)).hexdigest()


_Parts = tuple[Network, Dataset | None, dict[str, Any]]


def _training_settings(options: Options) -> TrainingSettings:
    return TrainingSettings(
        options.text("optimizer", "momentum"),
        options.positive("learning_rate", DEFAULT_LEARNING_RATE),
        options.flag("native", True),
    )


def _create(spec: WorkloadSpec, options: Options, dataset_name: str | None, seed: int) -> _Parts:
    """Create one of the models that Deep500 brings; a data set decides on the shape of its samples and its classes."""
    own = [name for name in inspect.signature(MODELS.get(spec.name)).parameters if name not in ("classes", "shape")]
    dtype = options.text("dtype", "float32")
    arguments = options.rest(own)
    if dataset_name is not None:
        dataset, _ = load_dataset(dataset_name)
        network: Network = find_model(spec.name, ((), {"dtype": dtype, **arguments}))(dataset, seed)
        return network, dataset, arguments
    given = {"classes": options.count("classes", None), "shape": options.shape("shape", None)}
    sizes: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    return create_model(spec.name, seed=seed, dtype=dtype, **sizes, **arguments), None, arguments


def _read(spec: WorkloadSpec, options: Options, dataset_name: str | None, seed: int) -> _Parts:
    """Read a network from a file; a data set is for its first input."""
    network = Network.load(spec.name)
    if dataset_name is None:
        return network, None, {}
    first = next(iter(network.inputs), "input")
    return network, load_dataset(dataset_name, first)[0], {}


def _with_loss(network: Network, given: str | None, dataset: Dataset | None) -> str:
    """Append a loss unless the network has one; return the name of the loss."""
    losses = list(network.losses)
    if losses:
        if given is not None:
            raise MeasurementError(f"The network has the loss {losses[0]!r} of its own, so that loss= is not accepted.")
        return losses[0]
    outputs = list(network.outputs)
    if "output" not in outputs and len(outputs) != 1:
        raise MeasurementError(
            f"The network has the outputs {', '.join(outputs) or 'none'} and no loss. Training it needs one output, or "
            "one named 'output', to append a loss to; mode=inference needs none."
        )
    prediction = "output" if "output" in outputs else outputs[0]
    default = dataset.loss if dataset is not None else "SoftmaxCrossEntropyLoss"
    label = dataset.label_node if dataset is not None else None
    return network.append_loss(given or default, prediction=prediction, label=label or "label")


def _needed_inputs(network: Network) -> list[str]:
    """Return the inputs without which an output that is no loss cannot be computed."""
    names = list(network.inputs)
    needed = []
    for name in names:
        try:
            network.program(frozenset(names) - {name})
        except InvalidInputError:
            needed.append(name)
    return needed


def _input_sizes(
    network: Network, names: list[str], batch_size: int | None, options: Options
) -> tuple[dict[str, tuple[int, ...]], int, bool]:
    """Return the shape of each input, the batch size, and whether that is the one size that the network leaves open.

    The batch is the first dimension of the first input. A symbolic size is what an option of its name says; without
    one it is the batch size where it is the batch's symbol, or a first dimension.
    """
    shapes = {name: _shape(options, name, network.inputs[name]) for name in names}
    first = next(iter(shapes.values()), ())
    batch = first[0] if first else 1
    if isinstance(batch, int) and batch_size not in (None, batch):
        raise MeasurementError(
            f"batch_size was given as {batch_size} in {options.spec.text!r}; the network takes minibatches of {batch} "
            "only."
        )
    count = batch if isinstance(batch, int) else batch_size or DEFAULT_BATCH_SIZE
    symbols = {size for shape in shapes.values() for size in shape or () if isinstance(size, str) and size != batch}
    given = {symbol: options.count(symbol, None) for symbol in sorted(symbols - set(options.taken))}
    sizes = {}
    for name, shape in shapes.items():
        known = [
            size
            if isinstance(size, int)
            else (given.get(str(size)) or (count if axis == 0 or size == batch is not None else None))
            for axis, size in enumerate(shape or ())
        ]
        if shape is None or None in known:
            raise MeasurementError(
                f"The network's input {name!r} is {network.inputs[name]}, which leaves a size open. Give each symbolic "
                f"size as an option, such as {next(iter(sorted(symbols)), 'length')}=128, or declare the sizes in the "
                "file."
            )
        sizes[name] = tuple(size for size in known if size is not None)
    is_free = not isinstance(batch, int) and not any(given.values())
    return sizes, count, is_free


def _shape(options: Options, name: str, descriptor: Any) -> tuple[Dimension, ...] | None:
    """Return the shape of an input, after a check that it is a tensor of numbers.

    Raises:
        MeasurementError: It is none.
    """
    if not isinstance(descriptor, TensorDescriptor) or descriptor.dtype == STRING:
        raise MeasurementError(
            f"{options.spec.text!r} cannot be measured: the network's input {name!r} is {descriptor}; accepted are "
            "networks whose inputs are tensors of numbers or truth values."
        )
    return descriptor.shape


def _synthetic(network: Network, sizes: Mapping[str, tuple[int, ...]], seed: int) -> Batches:
    return SyntheticBatches([synthetic_batch(network, sizes, seed, number) for number in range(SYNTHETIC_BATCHES)])


def _sampled(
    spec: WorkloadSpec, dataset: Dataset, inputs: Mapping[str, TensorDescriptor], batch_size: int, seed: int
) -> Batches:
    """Return the minibatches of a data set, after a check that it gives all that is fed, in the right form."""
    served = dataset.descriptors
    for name, wanted in inputs.items():
        given = served.get(name)
        sample = None if given is None or given.shape is None else given.shape[1:]
        if given is None or given.dtype != wanted.dtype or sample != (wanted.shape or ())[1:]:
            raise MeasurementError(
                f"{spec.text!r} does not fit together: the network's input {name!r} is {wanted}, and the data set "
                f"gives {'nothing' if given is None else given} for it."
            )

    def fed(batch: Batch) -> Batch:
        return {name: value for name, value in batch.items() if name in inputs}

    return SampledBatches(lambda: ShuffleSampler(dataset, batch_size, seed, transformations=[fed]))
