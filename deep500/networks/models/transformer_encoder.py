"""Transformer encoder for texts."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir
from onnxscript import OpBuilder, nn

from deep500.core.counts import check_count
from deep500.core.errors import InvalidInputError
from deep500.core.texts import shown
from deep500.networks.layers import Dropout, Linear, ModelInput, truncated_normal
from deep500.networks.models._arguments import check_divides, check_rate, check_text
from deep500.networks.sequence_layers import (
    Embedding,
    LayerNormalization,
    Projection,
    position_numbers,
    sinusoidal_positions,
)
from deep500.networks.tensor_roles import TensorRole

__all__ = ["transformer_encoder"]

#: How positions are told.
_POSITIONS = ("learned", "sinusoidal")

#: Of weights and embeddings.
_INITIAL = truncated_normal(0.02)


class EncoderLayer(nn.Module):
    """Attention of every token to all, then two linear layers with GELU; each added to its input and normalised."""

    def __init__(self, features: int, heads: int, hidden: int, rate: float) -> None:
        """Declare the layers; ``hidden`` is the size between the linear layers."""
        super().__init__()
        self.heads = heads
        self.query = Projection(features, features, _INITIAL)
        self.key = Projection(features, features, _INITIAL)
        self.value = Projection(features, features, _INITIAL)
        self.attended = Projection(features, features, _INITIAL)
        self.dropout1 = Dropout(rate)
        self.norm1 = LayerNormalization(features, epsilon=1e-12)
        self.linear1 = Projection(features, hidden, _INITIAL)
        self.linear2 = Projection(hidden, features, _INITIAL)
        self.dropout2 = Dropout(rate)
        self.norm2 = LayerNormalization(features, epsilon=1e-12)

    def forward(self, op: OpBuilder, x: ir.Value) -> ir.Value:
        """Add the nodes."""
        y = op.Attention(
            self.query(op, x),
            self.key(op, x),
            self.value(op, x),
            q_num_heads=self.heads,
            kv_num_heads=self.heads,
        )
        x = self.norm1(op, op.Add(x, self.dropout1(op, self.attended(op, y))))
        y = self.linear2(op, op.Gelu(self.linear1(op, x)))
        result: ir.Value = self.norm2(op, op.Add(x, self.dropout2(op, y)))
        return result


class TransformerEncoder(nn.Module):
    """Embeddings of tokens and positions, encoder layers, and scores from the first token: ``[N, T]`` to ``[N, C]``."""

    def __init__(self, classes: int, length: int | str, embeddings: Sequence[Embedding], layers: Sequence[nn.Module],
                 features: int, rate: float) -> None:  # fmt: skip
        """Declare the layers; ``embeddings`` are those of tokens and of positions."""
        super().__init__()
        self.length = length
        self.tokens, self.positions = embeddings
        self.norm = LayerNormalization(features, epsilon=1e-12)
        self.dropout = Dropout(rate)
        self.layers = nn.ModuleList([*layers])
        self.pooler = Linear(features, features, initial=_INITIAL)
        self.pooled_dropout = Dropout(rate)
        self.classifier = Linear(features, classes, initial=_INITIAL)

    def inputs(self) -> tuple[ModelInput, ...]:
        """Return the input: numbers of tokens."""
        return (ModelInput("input", (self.length,), "int64"),)

    def forward(self, op: OpBuilder, tokens: ir.Value) -> ir.Value:
        """Add the nodes."""
        x = op.Add(self.tokens(op, tokens), self.positions(op, position_numbers(op, tokens)))
        x = self.dropout(op, self.norm(op, x))
        for layer in self.layers:
            x = layer(op, x)
        x = op.Tanh(self.pooler(op, op.Gather(x, 0, axis=1)))
        scores: ir.Value = self.classifier(op, self.pooled_dropout(op, x))
        return scores


def transformer_encoder(
    *,
    classes: int = 2,
    shape: Sequence[int | str] = ("sequence",),
    vocabulary: int = 30522,
    features: int = 768,
    layers: int = 12,
    heads: int = 12,
    hidden: int | None = None,
    context: int = 512,
    positions: str = "learned",
    dropout: float = 0.1,
) -> nn.Module:
    """Return a transformer encoder that classifies texts, by default of the size of BERT-base.

    Source: A. Vaswani et al., "Attention is all you need", NeurIPS 2017; J. Devlin et al., "BERT: pre-training of deep
    bidirectional transformers for language understanding", NAACL 2019 (one segment): GELU, pooling of the first token,
    first weights from a normal distribution of deviation 0.02, truncated.

    Args:
        classes: Number of classes.
        shape: Shape of one sample, ``(T,)``; the length may be symbolic.
        vocabulary: Number of tokens.
        features: Size of a token's embedding.
        layers: Number of layers.
        heads: Number of attention heads; it divides ``features``.
        hidden: Size between the two linear layers; by default four times ``features``.
        context: Number of positions: the most tokens of a text.
        positions: ``"learned"`` or ``"sinusoidal"``.
        dropout: Share of values that is dropped in training.

    Raises:
        InvalidInputError: The sample is no text, or another argument is not accepted.
    """
    most = check_count("context", context, least=1)
    length = check_text("transformer_encoder", shape, most)
    size = check_count("features", features, least=1)
    head_count = check_divides("heads", heads, "features", size)
    between = 4 * size if hidden is None else check_count("hidden", hidden, least=1)
    rate = check_rate("dropout", dropout)
    if positions not in _POSITIONS:
        raise InvalidInputError(
            f"positions was given as {shown(positions)}; accepted are {' and '.join(map(repr, _POSITIONS))}."
        )
    count = check_count("layers", layers, least=1)
    table = (
        Embedding(most, size, _INITIAL)
        if positions == "learned"
        else Embedding(most, size, sinusoidal_positions, TensorRole.CONSTANT)
    )
    embeddings = (Embedding(check_count("vocabulary", vocabulary, least=1), size, _INITIAL), table)
    blocks = [EncoderLayer(size, head_count, between, rate) for _ in range(count)]
    return TransformerEncoder(classes, length, embeddings, blocks, size, rate)
