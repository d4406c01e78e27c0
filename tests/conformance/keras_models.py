"""How models of ``keras.applications`` are made, with random weights and inputs."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deep500.networks import Network
from deep500.networks.transforms.precision import Precision
from tests.conformance.real_model_sources import Arrays, Model, with_loss

__all__ = ["keras_model"]


def keras_model(
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

    def build() -> Any:
        import keras

        keras.utils.set_random_seed(0)
        function = getattr(keras.applications, name)
        if generic:
            function = getattr(sys.modules[function.__module__], generic)
        made = {"weights": None, "classes": 10, "classifier_activation": None, "input_shape": (size, size, 3)}
        model = function(**{**made, **settings})
        for layer in model._flatten_layers():
            if isinstance(layer, keras.layers.Dropout):  # what draws cannot be compared; networks from Keras have none
                layer.rate = 0.0
        return model

    def make() -> Model:
        model = build()
        _settle(model)
        scale = 255.0 if any("rescaling" in layer.name for layer in model._flatten_layers()) else 1.0
        images = scale * np.random.default_rng(0).random((batch, size, size, 3), np.float32)
        return _from_keras(model, build, images, train)

    return make


def _settle(model: Any) -> None:
    """Give the weights that begin as nothing, or as the identity, something to do: zeros hide errors."""
    rng = np.random.default_rng(3)
    for weight in model.weights:
        kind = weight.path.rpartition("/")[2]
        if kind == "moving_mean" or kind in ("bias", "beta"):
            weight.assign(0.1 * rng.standard_normal(weight.shape).astype(np.float32))
        elif kind == "moving_variance" or (kind == "gamma" and float(np.max(np.asarray(weight))) < 1e-3):
            # The scales are those of ConvNeXt, which begin so small that they hide its blocks.
            weight.assign(rng.uniform(0.5, 1.5, weight.shape).astype(np.float32))


def _from_keras(model: Any, build: Callable[[], Any], images: NDArray[Any], train: bool) -> Model:
    network = Network.from_keras(model)
    proto = network.to_proto()
    inputs: Arrays = dict(zip(network.inputs, [images], strict=True))
    own_outputs = [np.asarray(model(images, training=False))]
    _, label = with_loss(network, own_outputs[0], train, 0)
    names = [variable.path for variable in model.trainable_variables]

    def in_float64() -> Model:
        wide = _widened(model, build)
        network_in_float64 = Precision("float64").apply(network)
        given = images.astype(np.float64)
        return Model(
            network_in_float64, inputs, label, proto, None, lambda: _gradients(wide, names, given, label, train)
        )

    return Model(
        network, inputs, label, proto, own_outputs, lambda: _gradients(model, names, images, label, train), in_float64
    )


def _gradients(model: Any, names: list[str], images: NDArray[Any], label: NDArray[Any], train: bool) -> Arrays:
    """Return the gradients that Keras computes, by the names of the parameters; the statistics stay as they are."""
    import tensorflow as tf

    states = [np.asarray(variable) for variable in model.non_trainable_variables]
    with tf.GradientTape() as tape:
        scores = model(images, training=train)
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(label, scores))
    gradients = tape.gradient(loss, model.trainable_variables)
    for variable, state in zip(model.non_trainable_variables, states, strict=True):
        variable.assign(state)
    return {name: np.asarray(g) for name, g in zip(names, gradients, strict=True) if g is not None}


def _widened(model: Any, build: Callable[[], Any]) -> Any:
    """Return the model in float64, with the weights and the constants that it has in float32."""
    import keras
    import tensorflow as tf

    with _dtype("float64"):
        wide = build()
    for narrow_weight, weight in zip(model.weights, wide.weights, strict=True):
        weight.assign(np.asarray(narrow_weight))
    for narrow_layer, layer in zip(model._flatten_layers(), wide._flatten_layers(), strict=True):
        for name in ("epsilon", "scale", "offset"):
            value = getattr(layer, name, None)
            if isinstance(value, float):
                setattr(layer, name, float(np.float32(value)))
        if isinstance(layer, keras.layers.Normalization):
            factor = 1 / np.sqrt(np.asarray(narrow_layer.variance))  # what the network has, in float32
            layer.mean = tf.constant(np.asarray(narrow_layer.mean), tf.float64)
            layer.variance = tf.constant(1 / np.square(factor.astype(np.float64)))
    return wide


@contextlib.contextmanager
def _dtype(name: str) -> Iterator[None]:
    """Let Keras build models in a dtype."""
    import keras

    floatx, policy = keras.config.floatx(), keras.config.dtype_policy()
    keras.config.set_floatx(name)
    keras.config.set_dtype_policy(name)
    try:
        yield
    finally:
        keras.config.set_floatx(floatx)
        keras.config.set_dtype_policy(policy)
