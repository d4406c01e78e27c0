"""The domain ``ai.onnx.ml``: trees and tables natively, the rest of it on the host."""

from __future__ import annotations

from typing import Any

import torch

from deep500.frameworks.pytorch._recording import call_each_run, recorded
from deep500.frameworks.pytorch.lowering import lowerings
from deep500.frameworks.pytorch.lowering._host import run_on_host
from deep500.frameworks.pytorch.lowering._kinds import is_text
from deep500.frameworks.pytorch.lowering._label_table import label_table
from deep500.frameworks.pytorch.lowering._tree_ensemble import TreeEnsemble
from deep500.networks.operator_node import OperatorNode

__all__: list[str] = []

_DOMAIN = "ai.onnx.ml"


@lowerings.register("*", since=1, domain=_DOMAIN, on_host=True)
def evaluated(node: OperatorNode, *values: Any) -> Any:
    """What ONNX' reference makes of an operator of the domain that has no lowering of its own. Runs on the host."""
    return run_on_host(node, *values)


@recorded
def _extracted(x: torch.Tensor, indices: torch.Tensor) -> torch.Tensor:
    chosen = x[..., indices.reshape(-1)]
    return chosen.reshape(1, -1) if x.dim() == 1 else chosen


@lowerings.register("ArrayFeatureExtractor", since=1, domain=_DOMAIN)
def array_feature_extractor(node: OperatorNode, x: Any, indices: torch.Tensor) -> Any:
    """Elements of the last axis at given positions. Runs on the host where they are texts.

    Source: ONNX ai.onnx.ml ArrayFeatureExtractor-1.
    """
    return run_on_host(node, x, indices) if is_text(node) else _extracted(x, indices)


@lowerings.register("Binarizer", since=1, domain=_DOMAIN)
def binarizer(node: OperatorNode, x: torch.Tensor) -> torch.Tensor:
    """1 where the input is greater than a threshold, 0 elsewhere.

    Source: ONNX ai.onnx.ml Binarizer-1.
    """
    return torch.gt(x, node.attributes.get("threshold", 0.0)).type_as(x)


@lowerings.register("LabelEncoder", since=1, domain=_DOMAIN)
def label_encoder(node: OperatorNode, x: Any) -> Any:
    """What a table says of every element. Runs on the host where keys or values are texts.

    Source: ONNX ai.onnx.ml LabelEncoder-4.
    """
    return call_each_run(label_table(node), (x,))


@lowerings.register("TreeEnsemble", since=5, domain=_DOMAIN)
def tree_ensemble(node: OperatorNode, x: torch.Tensor) -> Any:
    """What the leaves of decision trees say of every row, taken together.

    Source: ONNX ai.onnx.ml TreeEnsemble-5.
    """
    return call_each_run(TreeEnsemble(node), (x,))
