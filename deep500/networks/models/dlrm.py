"""Recommender of numbers and categories."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import onnx_ir as ir
from onnxscript import OpBuilder, nn

from deep500.core.counts import check_count
from deep500.core.errors import InvalidInputError
from deep500.networks.layers import Linear, ModelInput, glorot_normal, normal, uniform
from deep500.networks.models._arguments import check_sizes
from deep500.networks.sequence_layers import Embedding

__all__ = ["dlrm"]


class ReluLayers(nn.Module):
    """Linear layers, each followed by a ReLU."""

    def __init__(self, sizes: Sequence[int]) -> None:
        """Declare the layers; ``sizes`` runs from the input to the output."""
        super().__init__()
        self.layers = nn.ModuleList([_linear(a, b) for a, b in pairwise(sizes)])

    def forward(self, op: OpBuilder, x: ir.Value) -> ir.Value:
        """Add the nodes."""
        for layer in self.layers:
            x = op.Relu(layer(op, x))
        return x


def _linear(inputs: int, outputs: int) -> Linear:
    """Return a layer whose first values follow those of the published code."""
    initial = glorot_normal(inputs, outputs)
    return Linear(inputs, outputs, initial=initial, initial_bias=normal(math.sqrt(1 / outputs)))


class DLRM(nn.Module):
    """Dense layers, embeddings, products of all pairs of them, dense layers: ``[N, D]``, ``[N, S]`` to ``[N, C]``."""

    def __init__(
        self, classes: int, dense: int, tables: Sequence[int], features: int, bottom: Sequence[int], top: Sequence[int]
    ) -> None:
        """Declare the layers; ``tables`` are the numbers of rows of the embeddings."""
        super().__init__()
        self.dense = dense
        self.count = len(tables)
        self.bottom = ReluLayers([dense, *bottom, features])
        self.tables = nn.ModuleList([Embedding(rows, features, uniform(1 / math.sqrt(rows))) for rows in tables])
        vectors = len(tables) + 1
        # Positions of the pairs i > j in a square of all products.
        self.pairs = [i * vectors + j for i in range(vectors) for j in range(i)]
        sizes = [features + len(self.pairs), *top]
        self.top = ReluLayers(sizes)
        self.classifier = _linear(sizes[-1], classes)

    def inputs(self) -> tuple[ModelInput, ...]:
        """Return the inputs: numbers, and of each category the row of its table."""
        return (ModelInput("input", (self.dense,)), ModelInput("categories", (self.count,), "int64"))

    def forward(self, op: OpBuilder, dense: ir.Value, categories: ir.Value) -> ir.Value:
        """Add the nodes."""
        x = self.bottom(op, dense)
        columns = [table(op, op.Gather(categories, [index], axis=1)) for index, table in enumerate(self.tables)]
        vectors = op.Concat(op.Unsqueeze(x, [1]), *columns, axis=1)
        products = op.MatMul(vectors, op.Transpose(vectors, perm=[0, 2, 1]))
        interactions = op.Gather(op.Flatten(products, axis=1), self.pairs, axis=1)
        scores: ir.Value = self.classifier(op, self.top(op, op.Concat(x, interactions, axis=1)))
        return scores


def dlrm(
    *,
    classes: int = 2,
    shape: Sequence[int] = (13,),
    tables: Sequence[int] = (1000,) * 26,
    features: int = 16,
    bottom: Sequence[int] = (512, 256, 64),
    top: Sequence[int] = (512, 256),
) -> nn.Module:
    """Return a deep learning recommendation model: numbers and categories to scores, such as whether someone clicks.

    Its inputs are ``"input"`` ``[N, D]`` and ``"categories"``, int64 ``[N, S]``: the row of each table.

    Source: M. Naumov et al., "Deep learning recommendation model for personalization and recommendation systems", 2019
    (arXiv:1906.00091); sizes and first values (Glorot's for weights) of its code for the Criteo Kaggle data.

    Args:
        classes: Number of scores; two of them have the logistic function of their difference as softmax.
        shape: Shape of the numbers of one sample, ``(D,)``.
        tables: Number of rows of each category's embedding.
        features: Size of the embeddings.
        bottom: Sizes of the hidden layers over the numbers.
        top: Sizes of the hidden layers over the interactions.

    Raises:
        InvalidInputError: The sample is no vector, or another argument is not accepted.
    """
    if len(shape) != 1:
        raise InvalidInputError(f"The model dlrm needs samples of shape (D,); received {tuple(shape)}.")
    rows = check_sizes("tables", tables, "(1000, 200)", least=1)
    size = check_count("features", features, least=1)
    return DLRM(
        classes,
        shape[0],
        rows,
        size,
        check_sizes("bottom", bottom, "(512, 256, 64)"),
        check_sizes("top", top, "(512, 256)"),
    )
