"""What commands on one network have in common: reading it, its mode, its loss, sizes and values of its inputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deep500.core.errors import InvalidInputError, OperatorError
from deep500.core.texts import shown_path

if TYPE_CHECKING:
    from deep500.networks.network import Network

__all__ = ["read_inputs", "read_network", "read_sizes", "register_operators"]


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


def register_operators(files: Sequence[str]) -> None:
    """Make the custom operators of Python files known, for networks that hold them as nodes.

    Raises:
        OperatorError: A file cannot be executed or defines no operator, or another operator has a name.
    """
    if not files:
        return
    from deep500.operators.custom import CustomOp
    from deep500.operators.custom.catalogue import register_custom_op
    from deep500.workloads._operator_check.python_file import execute_file

    for path in files:
        if not path.endswith(".py") or not Path(path).is_file():
            raise InvalidInputError(f"--operators was given as {shown_path(path)}; accepted is a Python file.")
        module = execute_file(Path(path))
        named = [value for name, value in vars(module).items() if not name.startswith("_")]
        kinds = [
            v for v in named if isinstance(v, type) and issubclass(v, CustomOp) and v.__module__ == module.__name__
        ]
        found: list[Any] = [*kinds, *(value for value in named if isinstance(value, CustomOp))]
        if not found:
            raise OperatorError(f"{shown_path(path)} defines no custom operator.")
        for op in found:
            register_custom_op(op)


def read_sizes(texts: Sequence[str]) -> dict[str, int]:
    """Return symbolic sizes of texts such as ``batch=4``.

    Raises:
        InvalidInputError: A text has another form.
    """
    found: dict[str, int] = {}
    for text in texts:
        name, equals, size = text.partition("=")
        if not name or not equals or not (size.isascii() and size.isdigit()):
            raise InvalidInputError(f"--size was given as {text!r}; accepted is NAME=N, such as batch=4.")
        if name in found:
            raise InvalidInputError(f"--size {name} was given twice: as {found[name]} and as {size}.")
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

    found: dict[str, Any] = {}
    for text in texts:
        name, equals, path = text.partition("=")
        if not name or not equals or not path:
            raise InvalidInputError(f"--input was given as {text!r}; accepted is NAME=FILE, such as x=x.npy.")
        if name in found:
            raise InvalidInputError(f"--input {name} was given twice.")
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
