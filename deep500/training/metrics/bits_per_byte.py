"""How well a language model predicts a text."""

from __future__ import annotations

from typing import Any

from deep500.core.errors import TrainingError
from deep500.datasets.text_dataset import TextDataset
from deep500.training.metrics.test_loss import TestLoss
from deep500.training.trainer import Trainer

__all__ = ["BitsPerByte"]


class BitsPerByte(TestLoss):
    r"""Bits a byte of the test set's text, UTF-8, in the last complete test.

    .. math:: \frac{loss}{\ln 2 \cdot bytes\ per\ symbol}

    with the mean cross-entropy in nats a symbol. It is what a compressor with this model would need, so that models of
    bytes, of characters and of other symbols compare, with each other and with compressors. Of one symbol out of 256,
    guessing takes 8.

    Source: A. Graves, "Generating sequences with recurrent neural networks", arXiv:1308.0850, 2013, section 3 (bits
    per character).
    """

    unit = "bit"

    @property
    def requires_inputs(self) -> bool:
        """True: the text is the data set of the trainer's validation sampler."""
        return True

    def measure(self, inputs: Any, outputs: Any, reference_outputs: Any = None) -> float:
        """Return the bits.

        Args:
            inputs: The ``Trainer``.
            outputs: Its ``TrainingStatistics``.
            reference_outputs: Not used.

        Raises:
            TrainingError: These are no trainer and statistics, no test was completed, or it was not on a text.
        """
        if not isinstance(inputs, Trainer):
            raise TrainingError(f"BitsPerByte is measured from a Trainer and its statistics; received {inputs!r}.")
        sampler = inputs.validation_sampler
        if sampler is None or not isinstance(sampler.dataset, TextDataset):
            received = "there is none" if sampler is None else f"it is a {type(sampler.dataset).__name__}"
            raise TrainingError(f"BitsPerByte needs a text as the test set, a TextDataset such as 'text'; {received}.")
        return sampler.dataset.bits_per_byte(super().measure(inputs, outputs))
