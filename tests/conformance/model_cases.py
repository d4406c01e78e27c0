"""Every model that Deep500 brings, so small that the reference trains it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from deep500.networks import Network, create_model

__all__ = ["CASES", "ModelCase"]


@dataclass(frozen=True)
class ModelCase:
    """A model, its arguments, the sizes that it leaves open, and the loss that it is trained with."""

    model: str
    arguments: dict[str, Any] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    loss: str = "SoftmaxCrossEntropyLoss"

    def create(self, **more: Any) -> Network:
        """Return the network, without its loss."""
        return create_model(self.model, **{**self.arguments, **more})


def _image(model: str, shape: tuple[int, ...], **arguments: Any) -> ModelCase:
    return ModelCase(model, {"classes": 3, "shape": shape, **arguments})


_TEXT = {"sequence": 5}
_GPT = {"classes": 11, "features": 16, "layers": 2, "heads": 4, "context": 8}
_ENCODER = {"classes": 3, "vocabulary": 11, "features": 16, "layers": 2, "heads": 4, "context": 8}
_LSTM = {"classes": 11, "embedding": 6, "hidden": 6}
_PLAIN = {"width": 2, "hidden": 8}

#: By name of the test.
CASES: dict[str, ModelCase] = {
    "lenet": _image("lenet", (1, 8, 8)),
    "mlp": _image("mlp", (6,), hidden=(5,)),
    "resnet": _image("resnet", (1, 8, 8), depth=8, width=2),
    "simple_cnn": _image("simple_cnn", (1, 8, 8), widths=(2, 3)),
    "alexnet": _image("alexnet", (3, 63, 63), **_PLAIN),
    "vgg": _image("vgg", (3, 32, 32), depth=11, normalization=True, **_PLAIN),
    **{f"vgg{depth}": _image(f"vgg{depth}", (3, 32, 32), **_PLAIN) for depth in (11, 13, 16, 19)},
    "imagenet_resnet": _image("imagenet_resnet", (3, 33, 40), width=2),
    **{f"resnet{depth}": _image(f"resnet{depth}", (3, 32, 32), width=2) for depth in (18, 34, 50, 101, 152)},
    "wide_resnet": _image("wide_resnet", (3, 8, 8), depth=10, factor=1),
    "mobilenet_v2": _image("mobilenet_v2", (3, 32, 32), multiplier=0.1),
    "unet": _image("unet", (1, 8, 12), depth=2, width=2),
    "unet-resize": _image("unet", (1, 8, 12), depth=2, width=2, upsampling="resize", normalization=True),
    "lstm_language_model": ModelCase("lstm_language_model", _LSTM, _TEXT),
    "lstm_language_model-tied": ModelCase("lstm_language_model", {**_LSTM, "tied": True}, _TEXT),
    "resnet_lstm": ModelCase(
        "resnet_lstm", {"classes": 3, "shape": ("time", 3, 16, 16), "width": 2, "hidden": 4, "layers": 2}, {"time": 3}
    ),
    "transformer_encoder": ModelCase("transformer_encoder", _ENCODER, _TEXT),
    "transformer_encoder-sinusoidal": ModelCase("transformer_encoder", {**_ENCODER, "positions": "sinusoidal"}, _TEXT),
    "gpt": ModelCase("gpt", _GPT, _TEXT),
    "gpt-shared-heads": ModelCase("gpt", {**_GPT, "shape": (6,), "shared_heads": 2, "tied": False}),
    "dcgan_generator": ModelCase(
        "dcgan_generator", {"shape": (4,), "image_size": 16, "width": 2}, loss="MeanSquaredError"
    ),
    "dcgan_discriminator": ModelCase(
        "dcgan_discriminator", {"shape": (3, 16, 16), "width": 2}, loss="MeanSquaredError"
    ),
    "dlrm": ModelCase("dlrm", {"shape": (3,), "tables": (4, 2, 5), "features": 4, "bottom": (6,), "top": (5,)}),
}
