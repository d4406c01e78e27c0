from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from deep500.core.errors import CompileError, OperatorError
from deep500.core.tensor_descriptor import tensordesc
from deep500.workloads._operator_check.operator_file import open_operator_file
from tests.unit.operators.sources import IPOWOP, MIXED

TEXT = f'''
import deep500 as d5
from deep500.operators.custom import CustomPythonOp
from tests.unit.operators.sources import cube_sum

def helper():
    pass

class Base(CustomPythonOp):
    """No forward: only the base of others."""

class NoSource(d5.CppOp):
    name = "no_source"

class Power(Base):
    def __init__(self, power, offset=0.0):
        super().__init__()
        if power == 13:
            raise RuntimeError("unlucky")
        self.power, self.offset = power, offset
    def forward(self, x):
        return x ** self.power + self.offset

class Twice(Base):
    def forward(self, x):
        return 2 * x

class _Private(Base):
    def forward(self, x):
        return x

class Described(d5.CustomPythonOp):
    def __init__(self, input_descriptors, output_descriptors, power):
        super().__init__(input_descriptors, output_descriptors)
        self.power = power
    def forward(self, inputs):
        return inputs[0] ** self.power

class Mixed(d5.CppOp):
    name = "mixed"
    source = r"""{MIXED}"""
    attributes = {{"offsets": (1,)}}
    def infer(self, shapes, dtypes):
        return [shapes[0], (1,)], [dtypes[0], "int64"]

cube = Power(3)
cubes_and_sums = cube_sum()
'''


@pytest.fixture
def file(tmp_path: Path) -> Any:
    (tmp_path / "mine.py").write_text(TEXT)
    return open_operator_file(tmp_path / "mine.py")


def refusal(function: Any, *arguments: Any) -> str:
    with pytest.raises(OperatorError) as caught:
        function(*arguments)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_operators_of_a_python_file(file: Any) -> None:
    """Bases, private ones, imported ones do not count; a class with objects is there through these."""
    assert file.names == ("Twice", "Described", "Mixed", "cube", "cubes_and_sums")
    assert file.open("Twice", {})(np.array([2.0])).tolist() == [4.0]
    assert file.open("cube", {})(np.array([2.0])).tolist() == [8.0]
    assert file.open("cube", {"power": 2})(np.array([2.0])).tolist() == [4.0]
    assert file.open("cubes_and_sums", {}).output_count == 2


def test_attributes(file: Any) -> None:
    assert file.attribute_names("cube") == ["power", "offset"]
    assert file.attribute_names("Twice") == ["input_descriptors", "output_descriptors"]
    assert file.attribute_names("cubes_and_sums") == []
    assert set(file.attribute_names("Mixed")) == {"scale", "extra", "mode", "offsets", "factors"}
    op = file.open("Mixed", {"factors": (0.5,), "scale": 3})
    assert (op.attributes["scale"], op.attributes["offsets"], op.attributes["factors"]) == (3.0, (1,), (0.5,))


@pytest.mark.parametrize(
    ("name", "attributes", "message"),
    [
        ("Twicee", {}, "has no operator 'Twicee'. Did you mean 'Twice'? It has: Twice, Described"),
        ("Twice", {"powr": 1}, "Twice has no attribute 'powr'"),
        ("Described", {}, "Described needs input_descriptors and output_descriptors, which only its file can give"),
        ("Mixed", {}, "mixed needs a value for factors: give --set factors=VALUE, or a default in the file."),
        ("Mixed", {"factors": (), "scael": 1}, "mixed has no attribute 'scael'"),
        ("Mixed", {"factors": "x"}, "accepted is a list of numbers"),
        ("cube", {"power": 13}, "cube(power=13, offset=0.0) cannot be made: RuntimeError: unlucky (mine.py:19)"),
        ("cube", {"powr": 13}, "Did you mean 'power'"),
    ],
)
def test_what_cannot_be_made(file: Any, name: str, attributes: Any, message: str) -> None:
    assert message in refusal(file.open, name, attributes)


def test_values_that_are_missing(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(TEXT.replace("cube = Power(3)", ""))
    file = open_operator_file(tmp_path / "mine.py")

    assert file.attribute_names("Power") == ["power", "offset"]
    assert "Power needs a value for power: give --set power=VALUE" in refusal(file.open, "Power", {})
    assert file.open("Power", {"power": 2}).attributes == {"power": 2, "offset": 0.0}


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("none.py", "x = 1\n", "none.py has no operators; accepted are classes that derive from d5.CustomPythonOp"),
        ("none.cpp", "int x;\n", "none.cpp registers no operator; accepted is D500_OPERATOR"),
        ("none.cpp", "// D500_OPERATOR(a, A)\n/* D500_OPERATOR(b, B) */\n", "registers no operator"),
        ("none.cpp", 'const char* x = "D500_OPERATOR(a, A)";\n', "registers no operator"),
        ("none.txt", "", "holds no operators; accepted are .py, .cpp"),
    ],
)
def test_files_without_operators(tmp_path: Path, name: str, text: str, message: str) -> None:
    (tmp_path / name).write_text(text)

    assert message in refusal(open_operator_file, tmp_path / name)


def test_files_that_are_not_there(tmp_path: Path) -> None:
    (tmp_path / "square.py").write_text("")

    assert "squares.py does not exist" in refusal(open_operator_file, tmp_path / "squares.py")
    assert "Did you mean" in refusal(open_operator_file, tmp_path / "squares.py")
    assert "is a folder" in refusal(open_operator_file, tmp_path)


def test_operators_of_a_source(tmp_path: Path) -> None:
    path = tmp_path / "mixed.cpp"
    path.write_text(MIXED)
    file = open_operator_file(path)

    assert file.names == ("mixed",)
    assert set(file.attribute_names("mixed")) == {"scale", "extra", "mode", "offsets", "factors"}
    assert "mixed needs values for factors, offsets: give --set factors=VALUE --set offsets=VALUE" in refusal(
        file.open, "mixed", {}
    )
    op = file.open("mixed", {"factors": (), "offsets": ()})
    assert op.input_count == 3


def test_a_class_of_a_source_is_named_for_the_file(tmp_path: Path) -> None:
    path = tmp_path / "ipowop.cpp"
    path.write_text("#define DPOWER 2\n" + IPOWOP)
    file = open_operator_file(path, [tensordesc("float64", 3)])

    assert file.names == ("ipowop",)
    assert file.open("ipowop", {})(np.array([3.0])).tolist() == [9.0]


def test_a_source_that_does_not_compile(tmp_path: Path) -> None:
    path = tmp_path / "broken.cpp"
    path.write_text("#include <deep500/operator.h>\nstruct A { int x = +; };\nD500_OPERATOR(broken, A)\n")
    file = open_operator_file(path)

    with pytest.raises(CompileError, match=r"The operator 'broken' did not compile: broken.cpp:2:"):
        file.open("broken", {})
