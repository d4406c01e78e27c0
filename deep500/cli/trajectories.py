"""``deep500 validate --training-steps``: do frameworks train a network alike, step by step?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from deep500.core.errors import InvalidInputError, near_miss

if TYPE_CHECKING:
    from deep500.networks.network import Network
    from deep500.training.validation.trajectory_report import TrajectoryReport

__all__ = ["compare_training"]


def compare_training(
    network: Network,
    factories: Sequence[Callable[[Any], Any]],
    steps: int,
    *,
    loss: str | None,
    optimizer: str,
    dataset: str | None,
    batch_size: int,
    sizes: dict[str, int],
    seed: int,
    tolerance: float | None,
    tell: Callable[[str], None],
) -> TrajectoryReport:
    """Train under several frameworks side by side; see ``compare_trajectories``.

    Args:
        network: The network.
        factories: What makes an executor of a network, the reference's first.
        steps: Number of steps.
        loss: Name of the loss.
        optimizer: Name of an optimizer.
        dataset: Name of a data set, of which the training set is used; random inputs and labels without one.
        batch_size: Samples a minibatch.
        sizes: Symbolic sizes of random inputs, by name.
        seed: Seed of the order, or of the random inputs.
        tolerance: What is allowed of a distance.
        tell: Is told of the progress.

    Raises:
        Deep500Error: An argument is not accepted, or the reference cannot train the network.
    """
    from deep500.training.catalogue import OPTIMIZERS
    from deep500.training.validation.trajectories import compare_trajectories

    if optimizer not in OPTIMIZERS:
        known = OPTIMIZERS.names()
        raise InvalidInputError(
            f"--optimizer was given as {optimizer!r}.{near_miss(optimizer, known)} Accepted are {', '.join(known)}."
        )
    return compare_trajectories(
        network,
        _data(network, steps, dataset, batch_size, sizes, seed),
        list(factories),
        steps,
        optimizer=optimizer,
        loss=loss,
        batch_size=batch_size,
        seed=seed,
        tolerance=tolerance,
        tell=tell,
    )


def _data(network: Network, steps: int, dataset: str | None, batch_size: int, sizes: dict[str, int], seed: int) -> Any:
    """Return the training set of a data set, or a list of random minibatches."""
    if dataset is None:
        from deep500.networks.random_inputs import random_inputs

        first = next(iter(network.inputs.values()), None)
        shape = getattr(first, "shape", None) or ()
        symbol = shape[0] if shape and isinstance(shape[0], str) else None
        chosen = {symbol: batch_size, **sizes} if symbol is not None else sizes
        return [random_inputs(network, chosen, seed + step) for step in range(steps)]
    from deep500.datasets.loading import load_dataset

    train_set, _ = load_dataset(dataset)
    if train_set.input_node not in network.inputs:
        raise InvalidInputError(
            f"The data set {dataset!r} is for an input {train_set.input_node!r}; the network's inputs are "
            f"{', '.join(network.inputs)}."
        )
    return train_set
