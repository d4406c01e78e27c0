"""Class numbers as probabilities."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deep500.core.errors import DatasetError
from deep500.datasets.augmentation import Augmentation
from deep500.datasets.augmentations._probabilities import checked_classes, class_probabilities

__all__ = ["OneHot"]


class OneHot(Augmentation):
    """Makes probabilities of class numbers, float32 ``[N, classes]``: 1 for the label's class, 0 for the others.

    ``SoftLabelCrossEntropyLoss`` takes them. It is for the samples that are tested on where those that are trained on
    have mixed labels (``Mixup``). Samples stay as they are, and need not be images.
    """

    def __init__(self, classes: int) -> None:
        """Set the number of classes.

        Args:
            classes: Number of classes.

        Raises:
            DatasetError: It is not accepted.
        """
        self.classes = checked_classes(classes)

    def __call__(self, batch: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """Return the minibatch with other labels.

        Raises:
            DatasetError: There are no labels, or they are not class numbers below the number of classes.
        """
        if self.label_node is None or self.label_node not in batch:
            raise DatasetError(
                f"OneHot changes the labels for the input {self.label_node!r}; the minibatch has "
                f"{', '.join(batch) or 'nothing'}."
            )
        labels = np.asarray(batch[self.label_node])
        return {**batch, self.label_node: class_probabilities("OneHot", labels, self.classes)}

    def apply(self, images: NDArray[Any]) -> NDArray[Any]:
        """Return the images."""
        return images
