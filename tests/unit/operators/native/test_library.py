from __future__ import annotations

import ctypes
import pickle
from pathlib import Path

import pytest

from deep500.core.errors import OperatorError
from deep500.operators.native.build import compile_library
from deep500.operators.native.library import NativeLibrary, Signature
from tests.unit.operators.sources import cube_sum, failing, mixed


def library(tmp_path: Path, description: str | None) -> NativeLibrary:
    """Return a library whose functions do nothing."""
    source = tmp_path / "odd.cpp"
    text = "nullptr" if description is None else f'R"({description})"'
    source.write_text(
        '#include <deep500/abi.h>\n#define E extern "C" __attribute__((visibility("default")))\n'
        f"E const char* d5_odd_describe(void) {{ return {text}; }}\n"
        "E int32_t d5_odd_forward(const d5_call*) { return 0; }\n"
    )
    return NativeLibrary(compile_library([source], "odd", folder=tmp_path), "odd")


def test_description() -> None:
    said = mixed().library.description

    assert (said.name, said.inputs, said.outputs) == ("mixed", 3, 2)
    assert said.dtypes == ("float32", "float64", "bfloat16", "float16")
    assert said.signatures[2] == Signature(("bfloat16", "int64", "bfloat16"), ("bfloat16", "int64"))
    assert said.devices == ("cpu",)
    assert said.attributes == {
        "scale": "float",
        "extra": "int",
        "mode": "string",
        "offsets": "ints",
        "factors": "floats",
    }
    assert said.defaults == {"scale": 2, "extra": -1, "mode": 'a"b'}
    assert (said.differentiable, said.twice_differentiable) == (True, False)
    assert (said.gradient_needs_inputs, said.gradient_needs_outputs) == (True, True)
    assert not cube_sum().library.description.gradient_needs_outputs


def test_symbols() -> None:
    found = mixed().library
    address = ctypes.cast(ctypes.CDLL(str(found.path)).d5_mixed_forward, ctypes.c_void_p).value

    assert found.symbol("forward") == address
    assert found.symbol("backward") not in (0, address)
    assert found.symbol("second") == 0
    assert found.symbol_name("backward") == "d5_mixed_backward"
    assert failing("").library.symbol("backward") == 0
    assert not failing("").library.has("backward")


def test_pickle() -> None:
    found = mixed().library

    assert pickle.loads(pickle.dumps(found)).symbol("forward") == found.symbol("forward")


def test_report_is_only_of_classes() -> None:
    with pytest.raises(OperatorError, match="has no function d5_mixed_report"):
        mixed().library.report()


def test_minimal_description(tmp_path: Path) -> None:
    found = library(
        tmp_path,
        '{"abi_version": 1, "name": "odd", "inputs": 1, "outputs": 1, "dtypes": ["float32"], "devices": ["cpu"], '
        '"attributes": {}, "differentiable": false, "gradient_needs": {"inputs": false, "outputs": true}}',
    )

    assert not found.description.gradient_needs_inputs
    assert found.description.signatures == ()


@pytest.mark.parametrize("description", [None, "", "{}", "[]", "no json", '{"abi_version": 1, "name": "odd"}'])
def test_broken_description(tmp_path: Path, description: str | None) -> None:
    with pytest.raises(OperatorError, match=r"d5_odd_describe of .* returned .*, which is no description"):
        library(tmp_path, description)


def test_other_version_of_the_border(tmp_path: Path) -> None:
    with pytest.raises(OperatorError, match=r"was built for version 7 of the border .* has version 1. Compile the"):
        library(tmp_path, '{"abi_version": 7}')


def test_missing_functions() -> None:
    found = mixed().library

    with pytest.raises(
        OperatorError, match=r"has no function d5_other_describe. Its source must register the operator"
    ):
        NativeLibrary(found.path, "other")


def test_file_that_is_no_library(tmp_path: Path) -> None:
    (tmp_path / "odd.so").write_text("no library")

    with pytest.raises(OperatorError, match=r"The library of operator 'odd' cannot be loaded: .*odd.so"):
        NativeLibrary(tmp_path / "odd.so", "odd")
    with pytest.raises(OperatorError, match="cannot be loaded"):
        NativeLibrary(tmp_path / "lost.so", "odd")
