"""Networks of Keras' own layers, to compare what Deep500 makes of their ONNX form with them."""

from __future__ import annotations

from typing import Any

import keras
from keras import layers

__all__ = ["INPUTS", "build"]

#: Shape of one sample; images have their channels last.
INPUTS = {"resnet18": (224, 224, 3), "mobilenet_v2": (224, 224, 3), "gpt_block": (64, 256)}


def _normalised(x: Any, filters: int, size: int, stride: int, *, relu: bool = True) -> Any:
    if stride > 1 and size > 1:
        x = layers.ZeroPadding2D(size // 2)(x)
    padding = "valid" if stride > 1 and size > 1 else "same"
    x = layers.Conv2D(filters, size, stride, padding, use_bias=False)(x)
    x = layers.BatchNormalization(epsilon=1e-5)(x)
    return layers.ReLU()(x) if relu else x


def _resnet18() -> keras.Model:
    inputs = keras.Input(INPUTS["resnet18"])
    x = _normalised(inputs, 64, 7, 2)
    x = layers.MaxPooling2D(3, 2)(layers.ZeroPadding2D(1)(x))
    before = 64
    for filters, stride in ((64, 1), (64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), (512, 1)):
        y = _normalised(_normalised(x, filters, 3, stride), filters, 3, 1, relu=False)
        if stride != 1 or filters != before:
            x = _normalised(x, filters, 1, stride, relu=False)
        x, before = layers.ReLU()(layers.Add()([x, y])), filters
    return keras.Model(inputs, layers.Dense(1000)(layers.GlobalAveragePooling2D()(x)), name="resnet18")


def _gpt_block() -> keras.Model:
    inputs = keras.Input(INPUTS["gpt_block"])
    y = layers.LayerNormalization(epsilon=1e-5)(inputs)
    y = layers.MultiHeadAttention(8, 32)(y, y, use_causal_mask=True)
    x = layers.Add()([inputs, y])
    y = layers.Dense(1024, activation="gelu")(layers.LayerNormalization(epsilon=1e-5)(x))
    return keras.Model(inputs, layers.Add()([x, layers.Dense(256)(y)]), name="gpt_block")


def build(model: str) -> keras.Model:
    """Return a network with weights from a fixed seed."""
    keras.utils.set_random_seed(0)
    if model == "mobilenet_v2":
        return keras.applications.MobileNetV2(INPUTS[model], weights=None, classifier_activation=None)
    return {"resnet18": _resnet18, "gpt_block": _gpt_block}[model]()
