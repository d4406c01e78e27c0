"""Calling compiled operators with NumPy arrays, through a small extension of Python that is compiled once."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import sys
import sysconfig
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from deep500.core.errors import CompileError, OperatorError
from deep500.operators.native.build import compile_library

__all__ = ["ATTRIBUTE_KINDS", "make_caller"]

#: Numbers of ``d5_attribute_kind`` by the words of a library's description.
ATTRIBUTE_KINDS = {"int": 1, "float": 2, "string": 3, "ints": 4, "floats": 5}

#: ``resolve(shapes, dtypes)`` refuses tensors or returns shape and dtype of every output, ``None`` for absent ones.
Resolve = Callable[[Sequence[Any], Sequence[Any]], Sequence[tuple[tuple[int, ...], np.dtype[Any]] | None]]


@cache
def _extension() -> Any:
    """Compile the extension where that was not done before, and load it."""
    name = "deep500_binding"
    include = sysconfig.get_paths()["include"]
    if not Path(include, "Python.h").is_file():
        raise CompileError(
            f"Calling C++ operators with NumPy arrays needs Python's header files, and {include} has no Python.h. "
            f"Install them (Debian, Ubuntu: 'apt install python3-dev'; Fedora: 'dnf install python3-devel')."
        )
    path = compile_library(
        [Path(__file__).with_name("_binding.cpp")],
        name,
        flags=["-isystem", include, "-isystem", np.get_include()],
        depends_on=[sys.version, np.__version__],
    )
    loader = importlib.machinery.ExtensionFileLoader(name, str(path))
    spec = importlib.util.spec_from_loader(name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    module.set_up(np.dtype(ml_dtypes.bfloat16).num, OperatorError)
    return module


def make_caller(
    address: int,
    name: str,
    input_count: int,
    attributes: Mapping[str, Any],
    kinds: Mapping[str, str],
    resolve: Resolve,
    *,
    always_tuple: bool = False,
) -> Callable[..., Any]:
    """Return a function of NumPy arrays that calls a function of the border.

    Arrays that are not row-major without gaps, not aligned, or in another order of bytes, are copied first; ``None``
    stands for an absent tensor. The interpreter's lock is free while the operator runs.

    Args:
        address: Address of the function.
        name: Name of the operator, for messages.
        input_count: Number of tensors that the function is given.
        attributes: Values of the operator's attributes.
        kinds: Their kinds, in the words of :class:`~deep500.operators.native.library.LibraryDescription`.
        resolve: Called for shapes and dtypes that are new, before any element is looked at.
        always_tuple: Return a tuple also where there is one output.

    Raises:
        CompileError: The extension cannot be compiled.
    """
    listed = tuple((key, ATTRIBUTE_KINDS[kinds[key]], value) for key, value in attributes.items())
    caller: Callable[..., Any] = _extension().Caller(address, name, input_count, listed, resolve, always_tuple)
    return caller
