"""Recurrent layers."""

from deep500.frameworks.reference.lowering._library import take

__all__: list[str] = []

take("RNN", "rnn", since=14)
take("GRU", "gru", since=14)
take("LSTM", "lstm", since=14)
