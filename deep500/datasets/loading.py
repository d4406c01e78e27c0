"""Loading the data sets that Deep500 knows by name."""

from __future__ import annotations

import inspect
from typing import Any

from deep500.core.errors import DatasetError, PluginError, near_miss
from deep500.core.registry import Registry
from deep500.datasets.dataset import Dataset

__all__ = ["DATASETS", "load_dataset"]

#: The data sets, one file each in ``deep500/datasets/library``. Each is a function of ``input_node``, ``label_node``
#: and keyword arguments of its own that returns the training set and the test set.
DATASETS = Registry("dataset", "deep500.datasets.library")


def load_dataset(
    name: str, input_node: str = "input", label_node: str = "label", **arguments: Any
) -> tuple[Dataset, Dataset]:
    """Load one of the data sets that ``deep500 list datasets`` shows.

    Args:
        name: The data set's name, such as ``"digits"``.
        input_node: Name of the network's input that the samples are for.
        label_node: Name of the network's input that the labels are for.
        **arguments: Arguments of the data set itself, such as ``folder=...``.

    Returns:
        The training set and the test set.

    Raises:
        UnknownNameError: There is no such data set.
        DatasetError: Its files are missing or not what they should be, or it has no such argument.
    """
    function = DATASETS.get(name)
    accepted = [p for p in inspect.signature(function).parameters if p not in ("input_node", "label_node")]
    for argument in arguments:
        if argument not in accepted:
            raise DatasetError(
                f"The data set {name!r} has no argument {argument!r}.{near_miss(argument, accepted)} "
                f"Accepted: {', '.join(accepted) or 'none'}."
            )
    loaded = function(input_node=input_node, label_node=label_node, **arguments)
    if not (isinstance(loaded, tuple) and len(loaded) == 2 and all(isinstance(part, Dataset) for part in loaded)):
        raise PluginError(f"The data set {name!r} must return a training set and a test set; it returned {loaded!r}.")
    train, test = loaded
    return train, test
