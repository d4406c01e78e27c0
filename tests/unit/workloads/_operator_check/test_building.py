from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from deep500.core.errors import CompileError, OperatorError
from deep500.workloads._operator_check.building import BuildClock, build
from deep500.workloads._operator_check.operator_file import open_operator_file
from tests.unit.workloads._operator_check.support import write_operators


def test_an_operator_in_python(tmp_path: Path) -> None:
    op, built = build(
        open_operator_file(write_operators(tmp_path, "NeedsPower")), "NeedsPower", {"power": 3}, BuildClock()
    )

    assert op.name == "NeedsPower"
    assert (built.language, built.inputs, built.outputs, built.compiled) == ("Python", 1, 1, None)
    assert dict(built.attributes) == {"power": 3}
    assert str(built) == "Python, nothing to compile"
    assert json.loads(json.dumps(built.to_dict()))["attributes"] == {"power": 3}


def test_an_operator_in_cpp_is_compiled_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEEP500_NATIVE_CACHE", str(tmp_path / "cache"))
    path = write_operators(tmp_path, "Native")
    first = build(open_operator_file(path), "Native", {}, BuildClock())[1]
    path.write_text(path.read_text() + "\n")  # so that the class is a new one, too
    for file in (tmp_path / "cache").rglob("*.so"):
        os.utime(file, (1, 1))
    second = build(open_operator_file(path), "Native", {}, BuildClock())[1]

    assert (first.compiled, second.compiled) == (True, False)
    assert first.time_s is not None
    assert second.time_s is not None
    assert first.time_s > second.time_s > 0
    assert (first.language, first.inputs, first.outputs, first.differentiable) == ("C++", 1, 1, True)
    assert first.dtypes == ("float32", "float64")
    assert first.devices == ("cpu",)
    assert first.symbols == ("d5_square_for_checks_forward", "d5_square_for_checks_backward")
    assert str(first).startswith("C++, compiled in ")
    assert str(first).endswith("float32, float64 on cpu; functions: forward, backward")
    assert str(second).startswith("C++, from the cache (")
    assert "unknown" not in first.compiler
    json.dumps(first.to_dict(), allow_nan=False)
    noted = Path(second.library).with_name("built.json")
    noted.write_text(
        json.dumps({key: value for key, value in json.loads(noted.read_text()).items() if key != "compiler"})
    )
    path.write_text(path.read_text() + "\n")
    assert "unknown" in build(open_operator_file(path), "Native", {}, BuildClock())[1].compiler


def test_a_source_that_does_not_compile(tmp_path: Path) -> None:
    file = open_operator_file(write_operators(tmp_path, "Native", "DoesNotCompile"))

    with pytest.raises(CompileError, match=r"square_for_checks.cpp:\d+: .*no_such_function"):
        build(file, "DoesNotCompile", {}, BuildClock())


def test_a_function_that_is_not_there(tmp_path: Path) -> None:
    file = open_operator_file(write_operators(tmp_path, "LacksSymbol"))

    with pytest.raises(OperatorError, match="has no function d5_another_name_describe"):
        build(file, "LacksSymbol", {}, BuildClock())
