"""Building blocks of the models over sequences: embeddings, normalisations, projections, recurrences, positions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray
from onnxscript import OpBuilder, nn

from deep500.networks.layers import InitializedParameter, InitialValues, ones, zeros
from deep500.networks.tensor_roles import TensorRole

__all__ = [
    "Embedding",
    "LayerNormalization",
    "LongShortTermMemory",
    "Projection",
    "RMSNormalization",
    "RotaryPositions",
    "VocabularyScores",
    "position_numbers",
    "rotate",
    "sinusoidal_positions",
]


class Embedding(nn.Module):
    """Rows of a table by number: int64 of any shape ``[...]`` to ``[..., F]``; ``weight`` is ``[count, F]``."""

    def __init__(
        self, count: int, features: int, initial: InitialValues, role: TensorRole = TensorRole.PARAMETER
    ) -> None:
        """Declare the table; a constant one is not trained."""
        super().__init__()
        self.weight = InitializedParameter([count, features], initial, role)

    def forward(self, op: OpBuilder, numbers: ir.Value) -> ir.Value:
        """Add one Gather node."""
        result: ir.Value = op.Gather(self.weight, numbers, axis=0)
        return result


class Projection(nn.Module):
    """Affine map of the last dimension of ``[..., I]`` to ``[..., O]``; ``weight`` is ``[I, O]``, ``bias`` ``[O]``."""

    def __init__(self, in_features: int, out_features: int, initial: InitialValues, *, bias: bool = True) -> None:
        """Declare weight and bias."""
        super().__init__()
        self.weight = InitializedParameter([in_features, out_features], initial)
        self.bias = InitializedParameter([out_features], zeros) if bias else None

    def forward(self, op: OpBuilder, x: ir.Value) -> ir.Value:
        """Add a MatMul node and, with a bias, an Add node."""
        product: ir.Value = op.MatMul(x, self.weight)
        return product if self.bias is None else op.Add(product, self.bias)


class VocabularyScores(nn.Module):
    """Scores of every token at every position: ``[N, T, F]`` to ``[N, V, T]``, the layout that ONNX' losses take.

    The weight is ``[V, F]``, so that it may be the table of an :class:`Embedding`.

    Source: O. Press and L. Wolf, "Using the output embedding to improve language models", EACL 2017 (one table for
    both).
    """

    def __init__(self, embedding: Embedding | None, count: int, features: int, initial: InitialValues) -> None:
        """Declare the weight, or take that of an embedding.

        Args:
            embedding: The embedding whose table is used, or ``None`` for a table of its own.
            count: Number of tokens.
            features: Number of features of each.
            initial: Rule for the first values of an own table.
        """
        super().__init__()
        if embedding is None:
            self.weight = InitializedParameter([count, features], initial)
        else:
            # The embedding owns it: registered here as well, it would be two.
            object.__setattr__(self, "weight", embedding.weight)

    def forward(self, op: OpBuilder, x: ir.Value) -> ir.Value:
        """Add a Transpose and a MatMul node."""
        result: ir.Value = op.MatMul(self.weight, op.Transpose(x, perm=[0, 2, 1]))
        return result


class LayerNormalization(nn.Module):
    """Normalisation of the last dimension, ``F``, to mean 0 and variance 1; ``scale`` and ``bias`` are ``[F]``.

    Source: J. L. Ba, J. R. Kiros and G. E. Hinton, "Layer normalization", 2016 (arXiv:1607.06450).
    """

    def __init__(self, features: int, *, epsilon: float = 1e-5) -> None:
        """Declare scale and bias."""
        super().__init__()
        self.epsilon = epsilon
        self.scale = InitializedParameter([features], ones)
        self.bias = InitializedParameter([features], zeros)

    def forward(self, op: OpBuilder, x: ir.Value) -> ir.Value:
        """Add one LayerNormalization node."""
        result: ir.Value = op.LayerNormalization(x, self.scale, self.bias, axis=-1, epsilon=self.epsilon)
        return result


class RMSNormalization(nn.Module):
    """Division of the last dimension, ``F``, by the root of its mean square; ``scale`` is ``[F]``.

    Source: B. Zhang and R. Sennrich, "Root mean square layer normalization", NeurIPS 2019.
    """

    def __init__(self, features: int, *, epsilon: float = 1e-5) -> None:
        """Declare the scale."""
        super().__init__()
        self.epsilon = epsilon
        self.scale = InitializedParameter([features], ones)

    def forward(self, op: OpBuilder, x: ir.Value) -> ir.Value:
        """Add one RMSNormalization node."""
        result: ir.Value = op.RMSNormalization(x, self.scale, axis=-1, epsilon=self.epsilon)
        return result


class LongShortTermMemory(nn.Module):
    """One LSTM layer over ``[T, N, I]``: the outputs ``[T, N, H]`` and the last one ``[N, H]``.

    Weights are as in ONNX: ``input_weight`` ``[1, 4H, I]``, ``recurrent_weight`` ``[1, 4H, H]``, ``bias`` ``[1, 8H]``,
    gates in the order input, output, forget, cell.

    Source: S. Hochreiter and J. Schmidhuber, "Long short-term memory", Neural Computation 9(8), 1997; ONNX LSTM-22.
    """

    def __init__(self, inputs: int, hidden: int, initial: InitialValues) -> None:
        """Declare weights and bias; the biases start at 0."""
        super().__init__()
        self.hidden = hidden
        self.input_weight = InitializedParameter([1, 4 * hidden, inputs], initial)
        self.recurrent_weight = InitializedParameter([1, 4 * hidden, hidden], initial)
        self.bias = InitializedParameter([1, 8 * hidden], zeros)

    def forward(self, op: OpBuilder, x: ir.Value) -> tuple[ir.Value, ir.Value]:
        """Add one LSTM node, and what removes the dimension of its directions."""
        outputs, last = op.LSTM(
            x, self.input_weight, self.recurrent_weight, self.bias, hidden_size=self.hidden, _outputs=2
        )
        return op.Squeeze(outputs, [1]), op.Squeeze(last, [0])


class RotaryPositions(nn.Module):
    r"""Rotation of each head's features by their position: pair :math:`i` of :math:`d` by :math:`p b^{-2i/d}`.

    Source: J. Su et al., "RoFormer: enhanced transformer with rotary position embedding", 2021 (arXiv:2104.09864);
    ONNX RotaryEmbedding-23.
    """

    def __init__(self, context: int, head_size: int, base: float) -> None:
        """Declare the tables of the first ``context`` positions, ``[context, head_size / 2]``; they are constants."""
        super().__init__()
        shape = [context, head_size // 2]
        self.cosines = InitializedParameter(shape, _rotation(np.cos, base), TensorRole.CONSTANT)
        self.sines = InitializedParameter(shape, _rotation(np.sin, base), TensorRole.CONSTANT)

    def forward(self, op: OpBuilder) -> tuple[ir.Value, ir.Value]:
        """Return the tables of cosines and sines, which all layers read."""
        return self.cosines, self.sines


def rotate(op: OpBuilder, x: ir.Value, positions: Sequence[ir.Value], heads: int) -> ir.Value:
    """Rotate ``[N, T, heads * head_size]`` by its positions: a RotaryEmbedding node.

    ONNX defines that operator for all floating dtypes but float64, for which its definition is written out.

    Args:
        op: Builder whose methods are the ONNX operators.
        x: What is rotated.
        positions: The tables of :class:`RotaryPositions`, and the numbers of the positions, int64 ``[N, T]``.
        heads: Number of heads.
    """
    result: ir.Value
    if x.dtype != ir.DataType.DOUBLE:
        result = op.RotaryEmbedding(x, *positions, num_heads=heads)
        return result
    *tables, numbers = positions
    cosines, sines = (op.Unsqueeze(op.Gather(table, numbers, axis=0), [2]) for table in tables)
    first, second = op.Split(op.Reshape(x, [0, 0, heads, -1]), axis=-1, num_outputs=2, _outputs=2)
    real = op.Sub(op.Mul(cosines, first), op.Mul(sines, second))
    imaginary = op.Add(op.Mul(sines, first), op.Mul(cosines, second))
    result = op.Reshape(op.Concat(real, imaginary, axis=-1), [0, 0, -1])
    result.shape = x.shape
    return result


def _rotation(function: Any, base: float) -> InitialValues:
    def table(stream: np.random.Generator, shape: Sequence[int]) -> NDArray[Any]:
        context, half = shape
        values: NDArray[Any] = function(np.arange(context)[:, None] * base ** (-np.arange(half) / half))
        return values

    return table


def sinusoidal_positions(stream: np.random.Generator, shape: Sequence[int]) -> NDArray[Any]:
    r"""Return sines (even features) and cosines (odd) of positions: :math:`\sin(p / 10000^{2i/d})`.

    Source: A. Vaswani et al., "Attention is all you need", NeurIPS 2017, section 3.5. The stream is not used.
    """
    context, features = shape
    angles = np.arange(context)[:, None] / 10000.0 ** (np.arange(features) // 2 * 2 / features)
    return np.where(np.arange(features) % 2, np.cos(angles), np.sin(angles))


def position_numbers(op: OpBuilder, tokens: ir.Value) -> ir.Value:
    """Return the numbers 0, 1, ... of the positions of ``[N, T]`` tokens, int64 ``[T]``."""
    length = op.Squeeze(op.Shape(tokens, start=1, end=2), [0])
    result: ir.Value = op.Range(0, length, 1)
    if tokens.shape is not None:  # which shape inference does not see where it is symbolic
        result.shape = ir.Shape(tokens.shape[1:])
    return result
