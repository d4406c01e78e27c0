"""Transformer decoder for language modelling."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir
from onnxscript import OpBuilder, nn

from deep500.core.counts import check_count
from deep500.core.errors import InvalidInputError
from deep500.core.texts import shown
from deep500.networks.layers import Dropout, InitialValues, ModelInput, normal
from deep500.networks.models._arguments import check_divides, check_flag, check_rate, check_text
from deep500.networks.sequence_layers import (
    Embedding,
    Projection,
    RMSNormalization,
    RotaryPositions,
    VocabularyScores,
    position_numbers,
    rotate,
)

__all__ = ["gpt"]

#: Of weights and embeddings.
_INITIAL = normal(0.02)


class DecoderLayer(nn.Module):
    """Attention of every token to those before it, then SwiGLU; each reads normalised values and is added."""

    def __init__(
        self, features: int, heads: tuple[int, int], hidden: int, residual: InitialValues, rate: float
    ) -> None:
        """Declare the layers.

        Args:
            features: Size of a token's features.
            heads: Numbers of heads of queries, and of keys and values.
            hidden: Size within SwiGLU.
            residual: Rule for the first values of the two weights whose results are added.
            rate: Share of values dropped before they are added.
        """
        super().__init__()
        self.heads, self.shared_heads = heads
        shared = features // self.heads * self.shared_heads
        self.attention_norm = RMSNormalization(features)
        self.query = Projection(features, features, _INITIAL, bias=False)
        self.key = Projection(features, shared, _INITIAL, bias=False)
        self.value = Projection(features, shared, _INITIAL, bias=False)
        self.attended = Projection(features, features, residual, bias=False)
        self.dropout1 = Dropout(rate)
        self.gated_norm = RMSNormalization(features)
        self.gate = Projection(features, hidden, _INITIAL, bias=False)
        self.up = Projection(features, hidden, _INITIAL, bias=False)
        self.down = Projection(hidden, features, residual, bias=False)
        self.dropout2 = Dropout(rate)

    def forward(self, op: OpBuilder, x: ir.Value, *positions: ir.Value) -> ir.Value:
        """Add the nodes; ``positions`` are the tables of cosines and sines, and the positions' numbers."""
        y = self.attention_norm(op, x)
        y = op.Attention(
            rotate(op, self.query(op, y), positions, self.heads),
            rotate(op, self.key(op, y), positions, self.shared_heads),
            self.value(op, y),
            is_causal=1,
            q_num_heads=self.heads,
            kv_num_heads=self.shared_heads,
        )
        x = op.Add(x, self.dropout1(op, self.attended(op, y)))
        y = self.gated_norm(op, x)
        gate = self.gate(op, y)
        y = self.down(op, op.Mul(op.Mul(gate, op.Sigmoid(gate)), self.up(op, y)))
        result: ir.Value = op.Add(x, self.dropout2(op, y))
        return result


class GPT(nn.Module):
    """An embedding, decoder layers, a normalisation, scores of every token: ``[N, T]`` to ``[N, V, T]``."""

    def __init__(
        self,
        embedding: Embedding,
        scores: VocabularyScores,
        layers: Sequence[nn.Module],
        rotary: RotaryPositions,
        features: int,
        length: int | str,
    ) -> None:
        """Declare the layers."""
        super().__init__()
        self.length = length
        self.embedding = embedding
        self.rotary = rotary
        self.layers = nn.ModuleList([*layers])
        self.norm = RMSNormalization(features)
        self.scores = scores

    def inputs(self) -> tuple[ModelInput, ...]:
        """Return the input: numbers of tokens."""
        return (ModelInput("input", (self.length,), "int64"),)

    def forward(self, op: OpBuilder, tokens: ir.Value) -> ir.Value:
        """Add the nodes."""
        x = self.embedding(op, tokens)
        numbers = op.Expand(position_numbers(op, tokens), op.Shape(tokens))
        tables = self.rotary(op)
        for layer in self.layers:
            x = layer(op, x, *tables, numbers)
        scores: ir.Value = self.scores(op, self.norm(op, x))
        return scores


def gpt(
    *,
    classes: int = 50257,
    shape: Sequence[int | str] = ("sequence",),
    features: int = 768,
    layers: int = 12,
    heads: int = 12,
    shared_heads: int | None = None,
    hidden: int | None = None,
    context: int = 1024,
    rotary_base: float = 10000.0,
    tied: bool = True,
    dropout: float = 0.0,
) -> nn.Module:
    """Return a transformer decoder, a language model: tokens ``[N, T]`` to scores of the next ``[N, V, T]``.

    Source: A. Radford et al., "Language models are unsupervised multitask learners", 2019 (sizes; first weights normal
    with deviation 0.02, those that are added divided by the root of their number) in the form of H. Touvron et al.,
    "LLaMA", 2023 (arXiv:2302.13971): RMS normalisation first, rotary positions, SwiGLU (N. Shazeer, 2020), no biases.
    Shared heads: J. Ainslie et al., "GQA", EMNLP 2023.

    Args:
        classes: Number of tokens of the vocabulary.
        shape: Shape of one sample, ``(T,)``; the length may be symbolic.
        features: Size of a token's features.
        layers: Number of layers.
        heads: Number of attention heads; it divides ``features`` into even parts.
        shared_heads: Number of heads of keys and values, which divides ``heads``; by default as many.
        hidden: Size within SwiGLU; by default 8/3 of ``features``, rounded up to a multiple of 64.
        context: Number of positions: the most tokens of a text.
        rotary_base: Base of the positions' wavelengths.
        tied: Whether embedding and scores share a table.
        dropout: Share of values that is dropped in training.

    Raises:
        InvalidInputError: The sample is no text, or another argument is not accepted.
    """
    most = check_count("context", context, least=1)
    length = check_text("gpt", shape, most)
    size = check_count("features", features, least=1)
    head_count = check_divides("heads", heads, "features", size)
    if size // head_count % 2:
        raise InvalidInputError(f"Heads of an odd size, features={size} by heads={head_count}, cannot be rotated.")
    shared = head_count if shared_heads is None else check_divides("shared_heads", shared_heads, "heads", head_count)
    between = -(-8 * size // 192) * 64 if hidden is None else check_count("hidden", hidden, least=1)
    count = check_count("layers", layers, least=1)
    rate = check_rate("dropout", dropout)
    residual = normal(0.02 / math.sqrt(2 * count))
    embedding = Embedding(classes, size, _INITIAL)
    return GPT(
        embedding,
        VocabularyScores(embedding if check_flag("tied", tied) else None, classes, size, _INITIAL),
        [DecoderLayer(size, (head_count, shared), between, residual, rate) for _ in range(count)],
        RotaryPositions(most, size // head_count, _check_base(rotary_base)),
        size,
        length,
    )


def _check_base(base: Any) -> float:
    number = isinstance(base, (int, float, np.integer, np.floating)) and not isinstance(base, bool)
    if not number or not math.isfinite(base) or base <= 1:
        raise InvalidInputError(f"rotary_base was given as {shown(base)}; accepted are numbers above 1.")
    return float(base)
