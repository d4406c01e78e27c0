"""Native operators in PyTorch: schemas and inference here, all the rest in one extension that serves every operator."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import sys
import sysconfig
from collections.abc import Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import torch

from deep500.core.errors import CompileError, OperatorError
from deep500.frameworks.pytorch._registration import define, infer_like, infer_types, unique_name
from deep500.operators.custom import CustomOp, NativeOp
from deep500.operators.native import compile_library

__all__ = ["register_native"]

_MODULE = "_deep500_custom_operator"

#: Numbers of ``d5_attribute_kind`` in <deep500/abi.h>.
_KINDS = {"int": 1, "float": 2, "string": 3, "ints": 4, "floats": 5}

_BACKWARD = "(Tensor[] given, int[] places, SymInt[] sizes, int[] ranks, int[] dtypes, bool[] wanted) -> Tensor[]"
_SECOND = "(Tensor[] given, int[] places, bool[] wanted) -> Tensor[]"


def register_native(op: CustomOp) -> Any:
    """Register an operator with PyTorch's dispatcher; return its entry.

    Raises:
        CompileError: The extension cannot be compiled.
    """
    assert isinstance(op, NativeOp)
    extension = _extension()
    name, outputs = unique_name(op), op.output_count
    entry = define(op, name, _schema(op), partial(_fake_forward, op))
    if op.library.has("backward"):
        define(op, f"_{name}_backward", _BACKWARD, partial(_fake_backward, outputs))
    if op.library.has("second"):
        define(op, f"_{name}_second", _SECOND, partial(_fake_second, outputs))
    extension.register_operator(name, _about(op))
    return entry


def _schema(op: NativeOp) -> str:
    optional = op.library.description.optional_inputs
    inputs = ", ".join(f"Tensor{'?' if i in optional else ''} x{i}" for i in range(op.input_count))
    outputs = ", ".join(["Tensor"] * op.output_count)
    return f"({inputs}) -> {outputs if op.output_count == 1 else f'({outputs})'}"


def _about(op: NativeOp) -> dict[str, Any]:
    reads_inputs, reads_outputs = op.gradient_needs
    devices = op.library.description.devices
    return {
        "name": op.name,
        "input_count": op.input_count,
        "output_count": op.output_count,
        **{which: op.library.symbol(which) for which in ("forward", "backward", "second")},
        "reads_inputs": reads_inputs,
        "reads_outputs": reads_outputs,
        "on_cpu": "cpu" in devices,
        "on_cuda": "cuda" in devices,
        "attributes": [
            _attribute(key, op.library.description.attributes[key], value) for key, value in op.attributes.items()
        ],
        "infer": partial(infer_types, op),
    }


def _attribute(name: str, kind: str, value: Any) -> tuple[Any, ...]:
    values = value if isinstance(value, tuple) else (value,)
    is_int, is_float = kind.startswith("int"), kind.startswith("float")
    return (
        name,
        _KINDS[kind],
        list(values) if is_int else [],
        list(map(float, values)) if is_float else [],
        value if kind == "string" else "",
    )


def _fake_forward(op: CustomOp, *inputs: torch.Tensor | None) -> Any:
    """Return outputs without values, for tracing."""
    types = infer_like(op, inputs)
    like = next(x for x in inputs if x is not None)
    outputs = tuple(like.new_empty(shape, dtype=dtype) for shape, dtype in types)
    return outputs[0] if op.output_count == 1 else outputs


def _fake_backward(
    output_count: int,
    given: Sequence[torch.Tensor],
    places: Sequence[int],
    sizes: Sequence[Any],
    ranks: Sequence[int],
    dtypes: Sequence[int],
    wanted: Sequence[bool],
) -> list[torch.Tensor]:
    at = dict(zip(places, given))
    found, begin = [], 0
    for index, is_wanted in enumerate(wanted):
        end = begin + (ranks[index] if ranks else 0)
        if is_wanted:
            known = at.get(output_count + index)
            shape = sizes[begin:end] if known is None else known.shape
            found.append(given[0].new_empty(shape, dtype=_dtypes()[dtypes[index]] if known is None else known.dtype))
        begin = end
    return found


def _fake_second(
    output_count: int, given: Sequence[torch.Tensor], places: Sequence[int], wanted: Sequence[bool]
) -> list[torch.Tensor]:
    at = dict(zip(places, given))
    input_count = len(wanted) - 2 * output_count
    tensors = [at[input_count + index] for index, is_wanted in enumerate(wanted) if is_wanted]
    return [tensor.new_empty(tensor.shape) for tensor in tensors]


@cache
def _dtypes() -> dict[int, torch.dtype]:
    """Return PyTorch's dtypes by their numbers in C++."""
    dtypes = {value for value in vars(torch).values() if isinstance(value, torch.dtype)}
    return {_extension().dtype_number(dtype): dtype for dtype in dtypes}


@cache
def _extension() -> Any:
    """Compile the extension where that was not done before, which takes half a minute, and load it."""
    folder, torch_folder = Path(__file__).parent, Path(torch.__file__).parent
    headers = [torch_folder / "include", torch_folder / "include/torch/csrc/api/include"]
    include = sysconfig.get_paths()["include"]
    if not Path(include, "Python.h").is_file():
        raise CompileError(
            f"Native operators in PyTorch need Python's header files, and {include} has no Python.h. Install them "
            f"(Debian, Ubuntu: 'apt install python3-dev'; Fedora: 'dnf install python3-devel')."
        )
    path = compile_library(
        [folder / "_custom_operator.cpp"],
        _MODULE,
        headers=[folder / "_native_operator.h", folder / "_native_autograd.h"],
        flags=[
            "-std=c++20",
            "-O2",
            f"-D_GLIBCXX_USE_CXX11_ABI={int(torch._C._GLIBCXX_USE_CXX11_ABI)}",
            *(f"-isystem{path}" for path in [*headers, include]),
        ],
        link_flags=[f"-L{torch_folder / 'lib'}", "-ltorch_python", "-ltorch_cpu", "-lc10"],
        depends_on=[torch.__version__, str(torch.version.git_version), sys.version],
        native=False,
    )
    loader = importlib.machinery.ExtensionFileLoader(_MODULE, str(path))
    spec = importlib.util.spec_from_loader(_MODULE, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    module.set_error(OperatorError)
    return module
