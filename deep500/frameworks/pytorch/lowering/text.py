"""Texts, which PyTorch cannot hold: every operator of this file runs on the host, on arrays of objects."""

from __future__ import annotations

from typing import Any

from deep500.frameworks.pytorch.lowering import lowerings
from deep500.frameworks.pytorch.lowering._host import run_on_host
from deep500.networks.operator_node import OperatorNode

__all__: list[str] = []


@lowerings.register("StringConcat", since=20, on_host=True)
def string_concat(node: OperatorNode, a: Any, b: Any) -> Any:
    """One text after the other, element by element. Runs on the host.

    Source: ONNX StringConcat-20.
    """
    return run_on_host(node, a, b)


@lowerings.register("StringNormalizer", since=10, on_host=True)
def string_normalizer(node: OperatorNode, x: Any) -> Any:
    """Texts without stop words, in upper or lower case. Runs on the host.

    Source: ONNX StringNormalizer-10.
    """
    return run_on_host(node, x)


@lowerings.register("StringSplit", since=20, on_host=True)
def string_split(node: OperatorNode, x: Any) -> Any:
    """Parts of every text, filled up with empty ones, and their numbers. Runs on the host.

    Source: ONNX StringSplit-20.
    """
    return run_on_host(node, x)


@lowerings.register("RegexFullMatch", since=20, on_host=True)
def regex_full_match(node: OperatorNode, x: Any) -> Any:
    """Whether a regular expression describes the whole text. Runs on the host.

    Source: ONNX RegexFullMatch-20.
    """
    return run_on_host(node, x)


@lowerings.register("TfIdfVectorizer", since=9, on_host=True)
def tf_idf_vectorizer(node: OperatorNode, x: Any) -> Any:
    """How often sequences of words or numbers occur. Runs on the host.

    Source: ONNX TfIdfVectorizer-9.
    """
    return run_on_host(node, x)
