"""Architectures written by others, with random weights: what the conformance tests run besides models made for tests.

Sources: layers of ``torch.nn``, ``keras.applications``, the models that the package ``onnx`` brings for its own tests
("light": real graphs without their trained weights), and, where they are installed (the extra ``testmodels``),
torchvision, timm, transformers, diffusers, segmentation-models-pytorch, pytorchcv and MONAI.
"""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from deep500.networks import Network

__all__ = ["MODELS", "MissingPackageError", "Model", "Recipe"]

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
        own_outputs: The outputs that the model's own library computes, in the network's order; ``None`` where the model
            comes as a file.
        own_gradients: The gradients of the loss that the model's own library computes, by the parameters' names.
    """

    network: Network
    inputs: Arrays
    label: NDArray[Any]
    proto: onnx.ModelProto
    own_outputs: Callable[[], list[NDArray[Any]]] | None = None
    own_gradients: Callable[[], Arrays] | None = None


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
        if module.partition(".")[0] in ("torchvision", "timm", "segmentation_models_pytorch"):
            _load_torchvision()
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
    proto = network.to_proto()
    positional = () if isinstance(example, Mapping) else example if isinstance(example, tuple) else (example,)
    named = dict(example) if isinstance(example, Mapping) else {}
    inputs = dict(zip(network.inputs, [value.numpy() for value in (*positional, *named.values())], strict=True))

    def run() -> list[torch.Tensor]:
        return list(_tensors(module(*positional, **named)))

    def own_outputs() -> list[NDArray[Any]]:
        module.eval()
        with torch.no_grad():
            return [value.numpy() for value in run()]

    prediction, *_ = own_outputs()
    loss, label = _with_loss(network, prediction, train, seed)

    def own_gradients() -> Arrays:
        module.train(train)
        module.zero_grad()
        measured = (torch.nn.functional.cross_entropy, torch.nn.functional.mse_loss)[loss == "MeanSquaredError"]
        measured(run()[0], torch.from_numpy(label)).backward()
        return {name: p.grad.numpy() for name, p in module.named_parameters() if p.grad is not None}

    return Model(network, inputs, label, proto, own_outputs, own_gradients)


def _tensors(value: Any) -> Any:
    """Yield the tensors of what a module returns, in order."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        for entry in value:
            yield from _tensors(entry)
    elif value is not None:
        yield value


def _with_loss(network: Network, prediction: NDArray[Any], train: bool, seed: int) -> tuple[str, NDArray[Any]]:
    """Append the loss that fits a prediction; return its name and a label."""
    rng = np.random.default_rng(seed + 1)
    label: NDArray[Any]
    if prediction.ndim == 2:
        loss, label = "SoftmaxCrossEntropyLoss", rng.integers(0, prediction.shape[1], len(prediction))
    else:
        loss, label = "MeanSquaredError", rng.standard_normal(prediction.shape).astype(np.float32)
    network.append_loss(loss, prediction=next(iter(network.outputs)))
    (network.train if train else network.eval)()
    return loss, label


def _torch(
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


def _timm(name: str, size: int, *, batch: int = 4, train: bool = False, **settings: Any) -> Callable[[], Model]:
    return _torch(
        "timm.create_model", (batch, 3, size, size), train=train, model_name=name, num_classes=10, **settings
    )


def _transformer(name: str, arguments: Sequence[str], output: str, **settings: Any) -> Callable[[], Model]:
    """Return what makes a model of the package transformers: configuration ``<name>Config``, inputs of 2 texts."""

    def make() -> Model:
        import torch

        package = _imported("transformers")
        torch.manual_seed(0)
        architecture, _, head = name.partition(":")
        config = getattr(package, f"{architecture}Config")(vocab_size=40, **settings)
        module = getattr(package, f"{architecture}{head or 'Model'}")(config)
        _settle(module)

        class OneOutput(torch.nn.Module):
            """The model without the values that it would use again for the next token."""

            def __init__(self) -> None:
                super().__init__()
                self.model = module

            def forward(self, **tokens: torch.Tensor) -> torch.Tensor:
                result: torch.Tensor = self.model(**tokens, **kept)[output]
                return result

        kept = {"use_cache": False} if hasattr(config, "use_cache") else {}
        namespace: dict[str, Any] = {"torch": torch, "kept": kept, "output": output}
        forward = f"def forward(self, {', '.join(arguments)}):\n    return self.model("
        forward += f"{', '.join(f'{a}={a}' for a in arguments)}, **kept)[output]"
        exec(forward, namespace)  # a signature of the model's own arguments, which torch.export asks for
        OneOutput.forward = namespace["forward"]  # type: ignore[method-assign]
        tokens = {a: torch.randint(1, 40, (2, 6 - i)) for i, a in enumerate(arguments)}
        return _from_torch(OneOutput(), tokens)

    return make


# --- Keras ------------------------------------------------------------------------------------------------------------


def _keras(
    name: str, size: int, *, batch: int = 4, generic: str = "", train: bool = True, **settings: Any
) -> Callable[[], Model]:
    """Return what makes a model of ``keras.applications``.

    Args:
        name: The model's name there.
        size: Height and width of the images.
        batch: How many.
        generic: The function of the same module that ``name`` calls with a size of its own; it makes smaller ones.
        train: Whether the model is differentiated in training mode.
        **settings: What the function is called with.
    """

    def make() -> Model:
        import keras

        keras.utils.set_random_seed(0)
        function = getattr(keras.applications, name)
        if generic:
            function = getattr(sys.modules[function.__module__], generic)
        made = {"weights": None, "classes": 10, "classifier_activation": None, "input_shape": (size, size, 3)}
        model = function(**{**made, **settings})
        scale = 255.0 if any("rescaling" in layer.name for layer in model._flatten_layers()) else 1.0
        images = scale * np.random.default_rng(0).random((batch, size, size, 3), np.float32)
        return _from_keras(model, images, train=train)

    return make


def _from_keras(model: Any, images: NDArray[Any], *, train: bool) -> Model:
    import tensorflow as tf

    rng = np.random.default_rng(3)
    for weight in model.weights:
        kind = weight.path.rpartition("/")[2]
        if kind == "moving_mean" or kind in ("bias", "beta"):
            weight.assign(0.1 * rng.standard_normal(weight.shape).astype(np.float32))
        elif kind == "moving_variance":
            weight.assign(rng.uniform(0.5, 1.5, weight.shape).astype(np.float32))
        elif kind == "gamma" and float(np.max(np.asarray(weight))) < 1e-3:  # ConvNeXt's scales, which hide its blocks
            weight.assign(rng.uniform(0.5, 1.5, weight.shape).astype(np.float32))
    network = Network.from_keras(model)
    proto = network.to_proto()

    def own_outputs() -> list[NDArray[Any]]:
        return [np.asarray(model(images, training=False))]

    _, label = _with_loss(network, own_outputs()[0], train, 0)

    def own_gradients() -> Arrays:
        with tf.GradientTape() as tape:
            scores = model(images, training=train)
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(label, scores))
        gradients = tape.gradient(loss, model.trainable_variables)
        return {v.path: np.asarray(g) for v, g in zip(model.trainable_variables, gradients) if g is not None}

    return Model(network, dict(zip(network.inputs, [images])), label, proto, own_outputs, own_gradients)


# --- the ONNX project's own -------------------------------------------------------------------------------------------


def _light(name: str, head: int = 0) -> Callable[[], Model]:
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
        _, label = _with_loss(network, np.zeros([d.dim_value for d in output], np.float32), False, 0)
        return Model(network, inputs, label, proto)

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
            value = rng.standard_normal(shape) * np.sqrt(2.0 / max(1, int(np.prod(shape[1:]))))
        else:
            value = 0.1 * rng.standard_normal(shape)
        graph.initializer.append(onnx.numpy_helper.from_array(value.astype(np.float32), node.output[0]))
        graph.node.remove(node)


# --- all --------------------------------------------------------------------------------------------------------------


def _smp(name: str, encoder: str, **settings: Any) -> Callable[[], Model]:
    path = f"segmentation_models_pytorch.{name}"
    made = {"encoder_name": encoder, "encoder_weights": None, "classes": 3}
    return _torch(path, (2, 3, 64, 64), train=True, **{**made, **settings})


def _unet() -> Model:
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


_WORDS = {"num_hidden_layers": 2, "num_attention_heads": 4, "hidden_size": 32, "intermediate_size": 48}
_NO_DROPOUT = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
_FEW = {"depths": (1, 1, 1, 1), "dims": (8, 16, 24, 32)}

#: Layers of torch.nn: always here with PyTorch.
_TORCH = [
    Recipe(
        "torch-transformer",
        _torch(
            "torch.nn.Transformer",
            (2, 6, 16),
            (2, 5, 16),
            d_model=16,
            nhead=2,
            num_encoder_layers=2,
            num_decoder_layers=2,
            dim_feedforward=32,
            dropout=0.0,
            batch_first=True,
        ),
        ("torch",),
    ),
    Recipe(
        "torch-transformer-layer",
        _torch(
            "torch.nn.TransformerEncoderLayer",
            (5, 2, 16),
            d_model=16,
            nhead=4,
            dim_feedforward=24,
            dropout=0.0,
            activation="gelu",
            norm_first=True,
        ),
        ("torch",),
    ),
    *(
        Recipe(
            f"torch-{name.lower()}",
            _torch(f"torch.nn.{name}", (3, 6, 5), input_size=5, hidden_size=7, batch_first=True, **settings),
            ("torch",),
        )
        for name, settings in {
            "LSTM": {"num_layers": 2, "bidirectional": True},
            "GRU": {"num_layers": 2},
            "RNN": {"bidirectional": True},
        }.items()
    ),
]

#: keras.applications: always here with TensorFlow and tf2onnx.
_KERAS = [
    Recipe(
        "keras-mobilenet-v3",
        _keras("MobileNetV3Small", 64, alpha=0.35, dropout_rate=0.0),
        ("keras", "tf2onnx"),
    ),
    Recipe(
        "keras-densenet",
        _keras("DenseNet121", 32, generic="DenseNet", blocks=[2, 2, 2, 2]),
        ("keras", "tf2onnx"),
    ),
    Recipe(
        "keras-convnext",
        _keras("ConvNeXtTiny", 64, generic="ConvNeXt", depths=[1, 1, 1, 1], projection_dims=[8, 16, 24, 32]),
        ("keras", "tf2onnx"),
    ),
    *(
        Recipe(f"keras-{name.lower()}", _keras(name, size, **settings), ("keras", "tf2onnx"), True, by_reference=False)
        for name, size, settings in [
            ("MobileNetV2", 64, {"alpha": 0.35}),
            ("EfficientNetB0", 64, {"drop_connect_rate": 0.0, "dropout_rate": 0.0} | {}),
            ("EfficientNetV2B0", 64, {}),
            ("ResNet50", 64, {}),
            ("ResNet50V2", 64, {}),
            ("InceptionV3", 75, {}),
            ("InceptionResNetV2", 75, {}),
            ("Xception", 71, {}),
            ("NASNetMobile", 64, {}),
            ("DenseNet121", 64, {}),
            ("VGG16", 32, {"train": False}),
        ]
    ),
]

#: The ONNX project's own: always here.
_ONNX = [
    Recipe("onnx-squeezenet", _light("squeezenet"), ()),
    Recipe("onnx-shufflenet", _light("shufflenet", 1), ()),
    *(
        Recipe(f"onnx-{name}", _light(name, head), (), True, by_reference=False)
        for name, head in {
            "bvlc_alexnet": 1,
            "densenet121": 0,
            "inception_v1": 1,
            "inception_v2": 1,
            "resnet50": 1,
            "vgg19": 1,
            "zfnet512": 1,
        }.items()
    ),
]

#: Of packages that need not be installed: the extra ``testmodels``.
_FURTHER = [
    Recipe(
        "timm-vit",
        _timm("vit_tiny_patch16_224", 32, img_size=32, patch_size=8, depth=2, embed_dim=24, num_heads=3),
        ("timm",),
    ),
    Recipe(
        "timm-swin",
        _timm(
            "swin_tiny_patch4_window7_224",
            32,
            batch=2,
            img_size=32,
            patch_size=2,
            window_size=4,
            embed_dim=12,
            depths=(2, 2),
            num_heads=(2, 3),
        ),
        ("timm",),
    ),
    Recipe("timm-convnext", _timm("convnext_atto", 64, **_FEW), ("timm",)),
    Recipe("timm-mixer", _timm("mixer_s32_224", 64, img_size=64, num_blocks=2, embed_dim=32), ("timm",)),
    Recipe("timm-mobilenet-v3", _timm("mobilenetv3_small_050", 64, train=True), ("timm",), True),
    Recipe("timm-regnet", _timm("regnety_002", 64, train=True), ("timm",), True),
    Recipe("timm-resnest", _timm("resnest14d", 64, train=True), ("timm",), True, by_reference=False),
    Recipe("timm-efficientnet", _timm("efficientnet_b0", 64, train=True), ("timm",), True, by_reference=False),
    Recipe("timm-inception", _timm("inception_v3", 96, train=True), ("timm",), True, by_reference=False),
    Recipe("torchvision-resnet", _torch("torchvision.models.resnet18", (4, 3, 64, 64), train=True, num_classes=10),
           ("torchvision",), by_reference=False),
    Recipe("torchvision-shufflenet",
           _torch("torchvision.models.shufflenet_v2_x0_5", (4, 3, 64, 64), train=True, num_classes=10),
           ("torchvision",), True),
    Recipe("smp-unet", _smp("Unet", "resnet18"), ("segmentation_models_pytorch",), True, by_reference=False),
    Recipe("smp-deeplab", _smp("DeepLabV3Plus", "resnet18"), ("segmentation_models_pytorch",), True, False),
    Recipe(
        "transformers-bert",
        _transformer("Bert", ["input_ids"], "last_hidden_state", **_WORDS, **_NO_DROPOUT),
        ("transformers",),
    ),
    Recipe(
        "transformers-gpt2",
        _transformer("GPT2:LMHeadModel", ["input_ids"], "logits", n_embd=32, n_layer=2, n_head=4, n_positions=16,
                     resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0),
        ("transformers",),
    ),
    Recipe(
        "transformers-llama",
        _transformer("Llama:ForCausalLM", ["input_ids"], "logits", num_key_value_heads=2, **_WORDS),
        ("transformers",),
    ),
    Recipe(
        "transformers-t5",
        _transformer("T5:ForConditionalGeneration", ["input_ids", "decoder_input_ids"], "logits", d_model=32, d_kv=8,
                     d_ff=48, num_layers=2, num_heads=4, dropout_rate=0.0),
        ("transformers",),
    ),
    Recipe("diffusers-unet", _unet, ("diffusers",)),
    Recipe(
        "monai-unet-3d",
        _torch("monai.networks.nets.UNet", (2, 1, 16, 16, 16), spatial_dims=3, in_channels=1, out_channels=2,
               channels=(4, 8, 16), strides=(2, 2), num_res_units=1),
        ("monai.networks.nets",),
    ),
    Recipe(
        "pytorchcv-seresnet",
        _torch("pytorchcv.model_provider.get_model", (4, 3, 64, 64), name="seresnet10", num_classes=10, train=True),
        ("pytorchcv.model_provider",),
        True,
        by_reference=False,
    ),
]

MODELS: list[Recipe] = [*_TORCH, *_KERAS, *_ONNX, *_FURTHER]
