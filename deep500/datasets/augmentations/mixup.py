"""Mixtures of two samples."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deep500.core.errors import DatasetError
from deep500.datasets.augmentation import (
    RandomAugmentation,
    checked_number,
    computing_dtype,
    is_floating,
    rounded_to,
)
from deep500.datasets.augmentations._probabilities import checked_classes, class_probabilities
from deep500.datasets.draws import uniform
from deep500.datasets.shuffling import shuffled_order

__all__ = ["Mixup"]


class Mixup(RandomAugmentation):
    r"""Mixes each sample with another one of the minibatch: :math:`x' = \lambda x + (1 - \lambda) x_{\pi}`.

    Labels are mixed alike, :math:`y' = \lambda y + (1 - \lambda) y_{\pi}`. The order :math:`\pi` is random, each order
    as likely, and :math:`\lambda` is drawn from :math:`Beta(\alpha, \alpha)`, once a minibatch.

    Labels must be numbers that can be mixed: regression targets, or probabilities. Class numbers cannot, and
    ``SoftmaxCrossEntropyLoss`` takes nothing else; so they are refused, unless ``classes`` says that they are to become
    probabilities, float32 ``[N, classes]``, for a network whose loss takes such: ``SoftLabelCrossEntropyLoss``. What is
    tested on is given the same form, unmixed, by ``OneHot(classes)``. Accuracy counts a mixed sample as right when the
    class with the largest share has the largest score.

    Source: H. Zhang et al., "mixup: beyond empirical risk minimization", ICLR 2018.
    """

    def __init__(self, alpha: float = 0.2, classes: int | None = None) -> None:
        r"""Set the distribution.

        Args:
            alpha: :math:`\alpha` above 0; small numbers leave one sample nearly as it is.
            classes: Number of classes, to make probabilities of class numbers.

        Raises:
            DatasetError: An argument is not accepted.
        """
        self.alpha = checked_number("alpha", alpha, 0.0)
        if self.alpha == 0:
            raise DatasetError("alpha was given as 0; accepted are numbers above 0. Leave Mixup out to mix nothing.")
        self.classes = None if classes is None else checked_classes(classes)
        self._share = 1.0
        self._other: NDArray[np.int64] = np.zeros(0, np.int64)

    def __call__(self, batch: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """Return the mixed minibatch.

        Raises:
            DatasetError: There are no images, or labels that cannot be mixed.
        """
        labels = self._labels(batch)
        mixed = super().__call__(batch)
        if labels is not None and self.label_node is not None:
            mixed[self.label_node] = self._mixed(labels)
        return mixed

    def apply(self, images: NDArray[Any]) -> NDArray[Any]:
        """Return mixed images; the share is drawn first, then the order."""
        from scipy.special import betaincinv

        self._share = float(betaincinv(self.alpha, self.alpha, uniform(self.stream, 1)[0]))
        self._other = shuffled_order(self.stream, len(images))
        return self._mixed(images)

    def _mixed(self, values: NDArray[Any]) -> NDArray[Any]:
        dtype = computing_dtype(values.dtype)
        first = values.astype(dtype, copy=False)
        share = dtype.type(self._share)
        return rounded_to(values.dtype, share * first + (1 - share) * first[self._other])

    def _labels(self, batch: Mapping[str, NDArray[Any]]) -> NDArray[Any] | None:
        if self.label_node is None or self.label_node not in batch:
            return None
        labels = np.asarray(batch[self.label_node])
        if is_floating(labels.dtype):
            return labels
        if self.classes is None:
            raise DatasetError(
                f"Mixup mixes labels, and {self.label_node!r} holds class numbers ({labels.dtype}), as "
                f"SoftmaxCrossEntropyLoss needs them; between two classes there is no class. Leave Mixup out, or use "
                f"Mixup(classes=...), which makes probabilities, with SoftLabelCrossEntropyLoss, which takes them."
            )
        return class_probabilities("Mixup", labels, self.classes)
