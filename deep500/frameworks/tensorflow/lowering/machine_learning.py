"""Classical machine learning, the operators of ai.onnx.ml."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from deep500.frameworks.tensorflow.lowering import lowerings
from deep500.frameworks.tensorflow.lowering._host import on_host
from deep500.frameworks.tensorflow.lowering._trees import tree_ensemble
from deep500.networks.operator_node import OperatorNode

__all__ = ["array_feature_extractor", "binarizer", "host_operator", "label_encoder", "tree_ensemble"]

_DOMAIN = "ai.onnx.ml"


@lowerings.register("ArrayFeatureExtractor", since=1, domain=_DOMAIN)
def array_feature_extractor(node: OperatorNode, x: tf.Tensor, indices: tf.Tensor) -> tf.Tensor:
    """Return the columns of x that the indices name; a vector counts as a matrix of one row.

    Source: ONNX ArrayFeatureExtractor-1 of ai.onnx.ml.
    """
    columns = tf.gather(x, tf.reshape(indices, [-1]), axis=-1)
    return columns[None, :] if x.shape.rank == 1 else columns


@lowerings.register("Binarizer", since=1, domain=_DOMAIN)
def binarizer(node: OperatorNode, x: tf.Tensor) -> tf.Tensor:
    """Return 1 where x is greater than the threshold, 0 elsewhere. Source: ONNX Binarizer-1 of ai.onnx.ml."""
    threshold = node.attributes.get("threshold", 0.0)
    # A threshold need not be a whole number where x is.
    wide = x if x.dtype.is_floating else tf.cast(x, tf.float64)
    return tf.cast(wide > tf.cast(threshold, wide.dtype), x.dtype)


@lowerings.register("LabelEncoder", since=2, domain=_DOMAIN)
def label_encoder(node: OperatorNode, x: tf.Tensor) -> tf.Tensor:
    """Return for each element the value that is given for it as a key, else a default.

    Source: ONNX LabelEncoder-4 of ai.onnx.ml.
    """
    keys, values = (np.ravel(_attribute(node, what)) for what in ("keys", "values"))
    table = {key: value for key, value in zip(keys.tolist(), values.tolist(), strict=True) if key == key}
    nan = [value for key, value in zip(keys.tolist(), values.tolist(), strict=True) if key != key]
    order = sorted(table)
    # The last entry is the default, the one before it what is given for NaN.
    default = _default(node, values.dtype)
    entries = [*(table[key] for key in order), nan[-1] if nan else default, default]
    place = _places(x, order)
    if nan:
        place = tf.where(tf.math.is_nan(x), len(order), place)
    constants = tf.constant(entries, tf.string if values.dtype.kind == "O" else tf.as_dtype(values.dtype))
    return tf.gather(constants, place)


@lowerings.register("*", since=1, domain=_DOMAIN, on_host=True)
def host_operator(node: OperatorNode, *tensors: tf.Tensor | None) -> tuple[tf.Tensor, ...]:
    """Run an operator of the domain without a lowering of its own. Runs on the host."""
    return on_host(node, *tensors)


def _attribute(node: OperatorNode, what: str) -> NDArray[Any]:
    """Return the keys or values of a LabelEncoder, whatever their type."""
    attributes = node.attributes
    for suffix, dtype in (("floats", np.float32), ("int64s", np.int64), ("strings", object)):
        if attributes.get(f"{what}_{suffix}"):
            return np.array(attributes[f"{what}_{suffix}"], dtype)
    tensor = np.asarray(attributes[f"{what}_tensor"])
    return tensor.astype(object) if tensor.dtype.kind in "OUS" else tensor


def _default(node: OperatorNode, dtype: np.dtype[Any]) -> Any:
    given = node.attributes.get("default_tensor")
    if given is not None:
        return np.ravel(given)[0]
    if dtype.kind == "O":
        return node.attributes.get("default_string", "_Unused")
    if dtype.kind == "f":
        return node.attributes.get("default_float", -0.0)
    return node.attributes.get("default_int64", -1)


def _places(x: tf.Tensor, order: list[Any]) -> tf.Tensor:
    """Return the position of each element among sorted keys, one behind the last two for those that are none."""
    missing = len(order) + 1
    if not order:
        return tf.fill(tf.shape(x), missing)
    if x.dtype == tf.string:
        matches = tf.equal(x[..., None], tf.constant(order))
        place = tf.argmax(tf.cast(matches, tf.int32), -1, tf.int32)
        return tf.where(tf.reduce_any(matches, -1), place, missing)
    keys = tf.constant(order, x.dtype)
    place = tf.reshape(tf.searchsorted(keys, tf.reshape(x, [-1])), tf.shape(x))
    place = tf.minimum(place, len(order) - 1)
    return tf.ensure_shape(tf.where(tf.equal(tf.gather(keys, place), x), place, missing), x.shape)
