"""Images mirrored at random."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from deep500.datasets.augmentation import RandomAugmentation, checked_number
from deep500.datasets.draws import uniform

__all__ = ["HorizontalFlip"]


class HorizontalFlip(RandomAugmentation):
    """Mirrors each image, left and right exchanged, with a given probability."""

    def __init__(self, probability: float = 0.5) -> None:
        """Set the probability, from 0 to 1.

        Raises:
            DatasetError: It is not accepted.
        """
        self.probability = checked_number("probability", probability, 0, 1)

    def apply(self, images: NDArray[Any]) -> NDArray[Any]:
        """Return the images, some of them mirrored."""
        chosen = uniform(self.stream, len(images)) < self.probability
        flipped = np.array(images)
        flipped[chosen] = images[chosen][..., ::-1]
        return flipped
