"""Language model of LSTM layers."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir
from onnxscript import OpBuilder, nn

from deep500.core.counts import check_count
from deep500.core.errors import InvalidInputError
from deep500.networks.layers import Dropout, InitializedParameter, ModelInput, uniform, zeros
from deep500.networks.models._arguments import check_flag, check_rate, check_text
from deep500.networks.sequence_layers import Embedding, LongShortTermMemory, VocabularyScores

__all__ = ["lstm_language_model"]


class LSTMLanguageModel(nn.Module):
    """An embedding, LSTM layers with dropout around them, scores of every token: ``[N, T]`` to ``[N, V, T]``."""

    def __init__(
        self, count: int, length: int | str, embedding: int, hidden: int, layers: int, rate: float, tied: bool
    ) -> None:
        """Declare the layers."""
        super().__init__()
        initial = uniform(0.05)
        self.length = length
        self.embedding = Embedding(count, embedding, initial)
        sizes = [embedding, *[hidden] * (layers - 1)]
        self.layers = nn.ModuleList([LongShortTermMemory(size, hidden, initial) for size in sizes])
        self.dropouts = nn.ModuleList([Dropout(rate) for _ in range(layers + 1)])
        self.scores = VocabularyScores(self.embedding if tied else None, count, hidden, initial)
        self.bias = InitializedParameter([count, 1], zeros)

    def inputs(self) -> tuple[ModelInput, ...]:
        """Return the input: numbers of tokens."""
        return (ModelInput("input", (self.length,), "int64"),)

    def forward(self, op: OpBuilder, tokens: ir.Value) -> ir.Value:
        """Add the nodes."""
        x = op.Transpose(self.embedding(op, tokens), perm=[1, 0, 2])
        for layer, dropout in zip(self.layers, self.dropouts):
            x, _ = layer(op, dropout(op, x))
        x = self.dropouts[len(self.layers)](op, x)
        result: ir.Value = op.Add(self.scores(op, op.Transpose(x, perm=[1, 0, 2])), self.bias)
        return result


def lstm_language_model(
    *,
    classes: int = 10000,
    shape: Sequence[int | str] = ("sequence",),
    embedding: int = 650,
    hidden: int = 650,
    layers: int = 2,
    dropout: float = 0.5,
    tied: bool = False,
) -> nn.Module:
    """Return a language model of LSTM layers: tokens ``[N, T]`` to scores of the next ``[N, V, T]``.

    Source: W. Zaremba et al., "Recurrent neural network regularization", 2014 (arXiv:1409.2329), section 4.1: the
    medium network, first weights uniform in [-0.05, 0.05].

    Args:
        classes: Number of tokens of the vocabulary.
        shape: Shape of one sample, ``(T,)``; the length may be symbolic.
        embedding: Size of a token's embedding.
        hidden: Size of each layer.
        layers: Number of layers.
        dropout: Share of values that is dropped before and after every layer in training.
        tied: Whether embedding and scores share a table (H. Inan et al., ICLR 2017); then both sizes are equal.

    Raises:
        InvalidInputError: The sample is no text, or another argument is not accepted.
    """
    length = check_text("lstm_language_model", shape)
    size = check_count("embedding", embedding, least=1)
    width = check_count("hidden", hidden, least=1)
    shared = check_flag("tied", tied)
    if shared and size != width:
        raise InvalidInputError(f"A shared table needs equal sizes; received embedding={size} and hidden={width}.")
    count = check_count("layers", layers, least=1)
    return LSTMLanguageModel(classes, length, size, width, count, check_rate("dropout", dropout), shared)
