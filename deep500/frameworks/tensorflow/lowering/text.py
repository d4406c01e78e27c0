"""Texts. What TensorFlow means otherwise than ONNX runs on the host."""

from __future__ import annotations

import tensorflow as tf

from deep500.core.tensor_descriptor import STRING, TensorDescriptor
from deep500.frameworks.tensorflow.lowering import lowerings
from deep500.frameworks.tensorflow.lowering._host import on_host
from deep500.networks.operator_node import OperatorNode

__all__ = ["regex_full_match", "string_concat", "string_normalizer", "string_split", "tf_idf_vectorizer"]


@lowerings.register("StringConcat", since=20)
def string_concat(node: OperatorNode, a: tf.Tensor, b: tf.Tensor) -> tf.Tensor:
    """Return the texts of a, each followed by that of b; both broadcast. Source: ONNX StringConcat-20."""
    return tf.math.add(a, b)


@lowerings.register("RegexFullMatch", since=20)
def regex_full_match(node: OperatorNode, x: tf.Tensor) -> tf.Tensor:
    """Return whether a regular expression, of RE2 in ONNX as well, matches the whole text.

    Source: ONNX RegexFullMatch-20.
    """
    return tf.strings.regex_full_match(x, node.attributes["pattern"])


@lowerings.register("StringNormalizer", since=10, on_host=True)
def string_normalizer(node: OperatorNode, x: tf.Tensor) -> tf.Tensor:
    """Return the texts in one case, without stop words. Runs on the host. Source: ONNX StringNormalizer-10."""
    return on_host(node, x, fallback=[TensorDescriptor(STRING, [None] * x.shape.rank)])[0]


@lowerings.register("StringSplit", since=20, on_host=True)
def string_split(node: OperatorNode, x: tf.Tensor) -> tuple[tf.Tensor, ...]:
    """Return the parts of each text, filled up with empty texts, and their number. Runs on the host.

    Source: ONNX StringSplit-20.
    """
    shape = x.shape.as_list()
    return on_host(node, x, fallback=[TensorDescriptor(STRING, [*shape, None]), TensorDescriptor("int64", shape)])


@lowerings.register("TfIdfVectorizer", since=9, on_host=True)
def tf_idf_vectorizer(node: OperatorNode, x: tf.Tensor) -> tf.Tensor:
    """Return how often n-grams occur in a text, perhaps weighted. Runs on the host. Source: ONNX TfIdfVectorizer-9."""
    size = max(node.attributes["ngram_indexes"], default=-1) + 1
    return on_host(node, x, fallback=[TensorDescriptor("float32", [*x.shape.as_list()[:-1], size])])[0]
