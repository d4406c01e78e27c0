"""How models of other people's libraries are made, with random weights and inputs."""

from __future__ import annotations

import contextlib
import copy
import functools
import importlib
import importlib.util
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from deep500.networks import Network
from deep500.networks.transforms.precision import Precision

__all__ = [
    "Arrays",
    "MissingPackageError",
    "Model",
    "Recipe",
    "light_model",
    "smp_model",
    "timm_model",
    "torch_model",
    "transformer_model",
    "unet_model",
    "with_loss",
]

Arrays = dict[str, NDArray[Any]]


class MissingPackageError(Exception):
    """A package that a model comes from cannot be used here."""


@dataclass
class Model:
    """A model that was made, with inputs.

    Attributes:
        network: The network, with a loss.
        inputs: What it is fed, the label not among it.
        label: The label of the loss.
        proto: The model as ONNX Runtime runs it, without the loss.
        own_outputs: The outputs that the model's own library computed, in the network's order; ``None`` where the model
            comes as a file.
        own_gradients: The gradients of the loss that the model's own library computes, by the parameters' names.
        in_float64: Makes the same model in float64, where it can be made.
    """

    network: Network
    inputs: Arrays
    label: NDArray[Any]
    proto: onnx.ModelProto
    own_outputs: list[NDArray[Any]] | None = None
    own_gradients: Callable[[], Arrays] | None = None
    in_float64: Callable[[], Model] | None = None


@dataclass(frozen=True)
class Recipe:
    """How a model is made.

    Attributes:
        name: Source and architecture.
        make: Makes it.
        packages: Modules that it needs.
        slow: Whether it is left out of the usual run of the tests.
        by_reference: Whether it is small enough for the NumPy reference.
        tolerance: What gradients may differ by, relative to the largest value of each.
    """

    name: str
    make: Callable[[], Model]
    packages: tuple[str, ...]
    slow: bool = False
    by_reference: bool = True
    tolerance: float = 1e-4

    def build(self) -> Model:
        """Make the model.

        Raises:
            MissingPackageError: A package is missing or cannot be imported.
        """
        for package in self.packages:
            _imported(package)
        return self.make()


def _imported(module: str) -> Any:
    """Import a module; torchvision also where its compiled operators do not load, which no model here needs."""
    try:
        if module.partition(".")[0] not in ("torch", "keras", "tf2onnx") and importlib.util.find_spec("torchvision"):
            _load_torchvision()  # most of the others import it where they find it
        return importlib.import_module(module)
    except Exception as error:
        # A package beside which another version of its dependencies is installed fails with any exception.
        raise MissingPackageError(f"{module} cannot be imported: {type(error).__name__}: {error}") from error


@functools.cache
def _load_torchvision() -> Any:
    """Import torchvision; its wheel for GPUs does not load its operators beside the processor's build of torch."""
    import torch

    try:
        return importlib.import_module("torchvision")
    except RuntimeError:  # "operator torchvision::nms does not exist"
        library = torch.library.Library("torchvision", "FRAGMENT")
        _load_torchvision.declared = library  # type: ignore[attr-defined]  # it takes its declarations with it
        for name in ("nms", "qnms"):
            library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        return importlib.import_module("torchvision")


# --- PyTorch ----------------------------------------------------------------------------------------------------------


def _from_torch(module: Any, example: Any, *, train: bool = False, seed: int = 0, **options: Any) -> Model:
    """Return a module as a model; ``train`` says in which mode it is differentiated."""
    import torch

    for parameter in module.parameters():
        parameter.requires_grad_(parameter.dtype.is_floating_point)
    network = Network.from_torch(module, example, **options)
    before = copy.deepcopy(module)
    proto = network.to_proto()
    positional = () if isinstance(example, Mapping) else example if isinstance(example, tuple) else (example,)
    named = dict(example) if isinstance(example, Mapping) else {}
    inputs = dict(zip(network.inputs, [value.numpy() for value in (*positional, *named.values())], strict=True))

    def run() -> list[torch.Tensor]:
        return list(_tensors(module(*positional, **named)))

    module.eval()
    with torch.no_grad():
        own_outputs = [value.numpy() for value in run()]
    loss, label = with_loss(network, own_outputs[0], train, seed)

    def own_gradients() -> Arrays:
        module.train(train)
        module.zero_grad()
        measured = (torch.nn.functional.cross_entropy, torch.nn.functional.mse_loss)[loss == "MeanSquaredError"]
        measured(run()[0], torch.from_numpy(label)).backward()
        return {name: p.grad.numpy() for name, p in module.named_parameters() if p.grad is not None}

    def in_float64() -> Model:
        with _default_of_float64():
            return _from_torch(before.double(), _doubled(example), train=train, seed=seed, **options)

    return Model(network, inputs, label, proto, own_outputs, own_gradients, in_float64)


@contextlib.contextmanager
def _default_of_float64() -> Iterator[None]:
    """Let modules make what they make on the way in float64, too."""
    import torch

    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(torch.float32)


def _doubled(example: Any) -> Any:
    if isinstance(example, Mapping):
        return {name: _doubled(value) for name, value in example.items()}
    if isinstance(example, tuple):
        return tuple(_doubled(value) for value in example)
    return example.double() if example.is_floating_point() else example


def _tensors(value: Any) -> Any:
    """Yield the tensors of what a module returns, in order."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        for entry in value:
            yield from _tensors(entry)
    elif value is not None:
        yield value


def with_loss(network: Network, prediction: NDArray[Any], train: bool, seed: int) -> tuple[str, NDArray[Any]]:
    """Append the loss that fits a prediction; return its name and a label."""
    rng = np.random.default_rng(seed + 1)
    label: NDArray[Any]
    if prediction.ndim == 2:
        loss, label = "SoftmaxCrossEntropyLoss", rng.integers(0, prediction.shape[1], len(prediction))
    else:
        loss, label = "MeanSquaredError", rng.standard_normal(prediction.shape).astype(prediction.dtype)
    network.append_loss(loss, prediction=next(iter(network.outputs)))
    (network.train if train else network.eval)()
    return loss, label


def torch_model(
    path: str, *shapes: Sequence[int], train: bool = False, options: Mapping[str, Any] | None = None, **settings: Any
) -> Callable[[], Model]:
    """Return what makes a module from its class or function and the shapes of its inputs."""

    def make() -> Model:
        import torch

        torch.manual_seed(0)
        home, _, name = path.rpartition(".")
        module = getattr(_imported(home), name)(**settings)
        _settle(module)
        example = tuple(torch.randn(*shape) for shape in shapes)
        return _from_torch(module, example, train=train, **(options or {}))

    return make


def _settle(module: Any) -> None:
    """Give the layers that begin as nothing, or as the identity, something to do: zeros hide errors."""
    import torch

    for name, parameter in module.named_parameters():
        if parameter.numel() and float(parameter.detach().abs().max()) < 1e-3:
            torch.nn.init.normal_(parameter, std=0.1 if name.endswith("bias") else 0.05)
    for name, buffer in module.named_buffers():
        if name.endswith("running_mean"):
            buffer.normal_(std=0.1)
        elif name.endswith("running_var"):
            buffer.uniform_(0.5, 1.5)


def timm_model(name: str, size: int, *, batch: int = 4, train: bool = False, **settings: Any) -> Callable[[], Model]:
    return torch_model(
        "timm.create_model", (batch, 3, size, size), train=train, model_name=name, num_classes=10, **settings
    )


def transformer_model(
    name: str, arguments: Sequence[str], output: str, *, sound: Sequence[int] = (), **settings: Any
) -> Callable[[], Model]:
    """Return what makes a model of the package transformers.

    Args:
        name: ``<configuration>:<class>``, without "Config" and without the same name before the class.
        arguments: What it is called with: two texts each.
        output: The output that is kept.
        sound: Shape of two sounds, ``input_features``, that it hears before it writes.
        **settings: Those of the configuration.
    """

    def make() -> Model:
        import torch

        package = _imported("transformers")
        torch.manual_seed(0)
        architecture, _, head = name.partition(":")
        config = getattr(package, f"{architecture}Config")(vocab_size=40, **settings)
        module = getattr(package, f"{architecture}{head or 'Model'}")(config)
        _settle(module)

        kept = {"use_cache": False} if hasattr(config, "use_cache") else {}

        class OneText(torch.nn.Module):
            """The model without the values that it would use again for the next token."""

            def __init__(self) -> None:
                super().__init__()
                self.model = module

            def forward(self, input_ids: torch.Tensor) -> Any:
                return self.model(input_ids=input_ids, **kept)[output]

        class TwoTexts(OneText):
            """The same of a model that reads one text and writes another."""

            def forward(self, input_ids: torch.Tensor, decoder_input_ids: torch.Tensor) -> Any:
                return self.model(input_ids=input_ids, decoder_input_ids=decoder_input_ids, **kept)[output]

        class Sound(OneText):
            """The same of a model that hears and writes."""

            def forward(self, input_features: torch.Tensor, decoder_input_ids: torch.Tensor) -> Any:
                return self.model(input_features=input_features, decoder_input_ids=decoder_input_ids, **kept)[output]

        tokens = {a: torch.randint(1, 40, (2, 6 - i)) for i, a in enumerate(arguments)}
        if sound:
            return _from_torch(Sound(), {"input_features": torch.randn(*sound), **tokens})
        return _from_torch((OneText, TwoTexts)[len(arguments) - 1](), tokens)

    return make


# --- the ONNX project's own -------------------------------------------------------------------------------------------


def light_model(name: str, head: int = 0) -> Callable[[], Model]:
    """Return what makes one of the ONNX project's "light" models, with random values for its ConstantOfShape weights.

    Args:
        name: The model's name, without ``light_``.
        head: How many nodes are left out at the end: a Softmax over scores of random weights would be nearly constant.
    """

    def make() -> Model:
        folder = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
        proto = onnx.load(folder / f"light_{name}.onnx")
        rng = np.random.default_rng(0)
        _draw_weights(proto.graph, rng)
        proto.ir_version = max(proto.ir_version, 4)  # the first in which initializers need not be inputs as well
        for _ in range(head):
            node = proto.graph.node.pop()
            proto.graph.output[0].name = node.input[0]
        stored = {tensor.name for tensor in proto.graph.initializer}
        shapes = {
            value.name: [d.dim_value for d in value.type.tensor_type.shape.dim]
            for value in proto.graph.input
            if value.name not in stored
        }
        inputs = {key: rng.standard_normal(shape).astype(np.float32) for key, shape in shapes.items()}
        network = Network.load(proto)
        output = proto.graph.output[0].type.tensor_type.shape.dim
        _, label = with_loss(network, np.zeros([d.dim_value for d in output], np.float32), False, 0)

        def in_float64() -> Model:
            return Model(Precision("float64").apply(network).eval(), inputs, label, proto)

        return Model(network, inputs, label, proto, in_float64=in_float64)

    return make


def _draw_weights(graph: onnx.GraphProto, rng: np.random.Generator) -> None:
    """Replace the ConstantOfShape nodes of a graph, which stand for weights, by random initializers."""
    stored = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in graph.initializer}
    uses = {name: (node.op_type, i) for node in graph.node for i, name in enumerate(node.input)}
    for node in [node for node in graph.node if node.op_type == "ConstantOfShape"]:
        shape = tuple(int(size) for size in stored[node.input[0]])
        operator, index = uses[node.output[0]]
        if operator in ("BatchNormalization", "Mul") and index in (1, 4):  # scales, variances
            value = rng.uniform(0.5, 1.5, shape)
        elif len(shape) > 1:  # filters and matrices keep the size of what they are given
            value = rng.standard_normal(shape) * np.sqrt(1.0 / max(1, int(np.prod(shape[1:]))))
        else:
            value = 0.1 * rng.standard_normal(shape)
        graph.initializer.append(onnx.numpy_helper.from_array(value.astype(np.float32), node.output[0]))
        graph.node.remove(node)


def smp_model(name: str, encoder: str, **settings: Any) -> Callable[[], Model]:
    path = f"segmentation_models_pytorch.{name}"
    made = {"encoder_name": encoder, "encoder_weights": None, "classes": 3}
    return torch_model(path, (2, 3, 64, 64), train=True, **{**made, **settings})


def unet_model() -> Model:
    """A U-Net of the package diffusers: residual blocks with a time, attention, skips."""
    import torch

    package = _imported("diffusers")
    torch.manual_seed(0)
    module = package.UNet2DModel(
        sample_size=16,
        in_channels=2,
        out_channels=2,
        layers_per_block=1,
        block_out_channels=(8, 16),
        norm_num_groups=4,
        attention_head_dim=4,
        down_block_types=("DownBlock2D", "AttnDownBlock2D"),
        up_block_types=("AttnUpBlock2D", "UpBlock2D"),
    )
    _settle(module)

    class Noise(torch.nn.Module):
        """The model with a plain tensor as its output."""

        def __init__(self) -> None:
            super().__init__()
            self.model = module

        def forward(self, sample: torch.Tensor, timestep: torch.Tensor) -> torch.Tensor:
            result: torch.Tensor = self.model(sample, timestep).sample
            return result

    return _from_torch(Noise(), (torch.randn(2, 2, 16, 16), torch.tensor([3, 40])))
