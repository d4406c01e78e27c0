"""What commands on one network have in common: reading it, its mode, its loss, sizes and values of its inputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from deep500.core.errors import InvalidInputError
from deep500.core.texts import shown_path

if TYPE_CHECKING:
    from deep500.networks.network import Network

__all__ = ["read_inputs", "read_network", "read_sizes"]


def read_network(model: str, loss: str | None = None, mode: str = "eval", seed: int = 0) -> tuple[Network, str | None]:
    """Return a network in its mode, and the output that is differentiated.

    Args:
        model: An ONNX file, or the name of a model.
        loss: A loss that is appended, or the name of an output.
        mode: ``"eval"``, ``"train"`` or ``"declared"``.
        seed: Seed of the weights of a named model.

    Raises:
        Deep500Error: There is no such model, loss or mode, or it is no valid network.
    """
    from deep500.networks.creation import MODELS, create_model
    from deep500.networks.network import Network

    modes: dict[str, Callable[[Network], Network]] = {
        "eval": Network.eval,
        "train": Network.train,
        "declared": Network.as_declared,
    }
    if mode not in modes:
        raise InvalidInputError(f"--mode was given as {mode!r}; accepted are {', '.join(modes)}.")
    network = create_model(model, seed=seed) if model in MODELS else Network.load(model)
    output = loss
    if loss is not None and loss not in network.outputs and loss not in network.losses:
        output = network.append_loss(loss)
    return modes[mode](network), output


def read_sizes(texts: Sequence[str]) -> dict[str, int]:
    """Return symbolic sizes of texts such as ``batch=4``.

    Raises:
        InvalidInputError: A text has another form.
    """
    found = {}
    for text in texts:
        name, equals, size = text.partition("=")
        if not name or not equals or not (size.isascii() and size.isdigit()):
            raise InvalidInputError(f"--size was given as {text!r}; accepted is NAME=N, such as batch=4.")
        found[name] = int(size)
    return found


def read_inputs(network: Network, texts: Sequence[str], sizes: dict[str, int], seed: int) -> dict[str, Any]:
    """Return a value for every input: those of files, given as ``x=x.npy``, and random ones for the others.

    Raises:
        InvalidInputError: A text has another form, or a file holds no array; or values of an input cannot be made up.
        UnknownNameError: The network has no size of a name that was given.
    """
    from deep500.networks.random_inputs import random_inputs

    values = _values(texts)
    return {**random_inputs(network, sizes, seed, without=values), **values}


def _values(texts: Sequence[str]) -> dict[str, Any]:
    import numpy as np

    found = {}
    for text in texts:
        name, equals, path = text.partition("=")
        if not name or not equals or not path:
            raise InvalidInputError(f"--input was given as {text!r}; accepted is NAME=FILE, such as x=x.npy.")
        try:
            value = np.load(path, allow_pickle=False)
        except (OSError, ValueError, EOFError) as error:
            raise InvalidInputError(f"--input {text}: {shown_path(path)} is no file of one array: {error}") from error
        if not isinstance(value, np.ndarray):
            raise InvalidInputError(
                f"--input {text}: {shown_path(path)} holds several arrays; accepted is a .npy file."
            )
        found[name] = value
    return found
