from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from deep500.core.errors import CompileError, OperatorError
from deep500.operators.custom.cpp_op import CppOp
from tests.unit.operators.sources import CUBE_SUM, MIXED


class CubeSum(CppOp):
    name = "cube_sum"
    source = CUBE_SUM
    dtypes = ("float32", "float64")

    def infer(self, shapes: Any, dtypes: Any) -> Any:
        return [shapes[0], shapes[0][:1]], [dtypes[0], dtypes[0]]


class Mixed(CppOp):
    name = "mixed"
    source = MIXED
    attributes = {"offsets": (1,), "factors": (), "scale": 5}  # noqa: RUF012 - the form for authors

    def infer(self, shapes: Any, dtypes: Any) -> Any:
        return [shapes[0], (1,)], [dtypes[0], "int64"]


def test_declared_operator() -> None:
    cubes, sums = CubeSum()(np.array([[1.0, 2.0]]))

    assert (cubes.tolist(), sums.tolist()) == ([[1.0, 8.0]], [3.0])
    assert CubeSum.name == "cube_sum"


def test_attributes_have_the_defaults_of_the_class_and_of_the_source() -> None:
    assert Mixed().attributes == {"scale": 5.0, "extra": -1, "mode": 'a"b', "offsets": (1,), "factors": ()}
    assert Mixed(scale=1, mode="m").attributes["scale"] == 1.0
    assert Mixed(scale=1).with_attributes(extra=3).attributes["extra"] == 3
    with pytest.raises(OperatorError, match="no attribute 'size'"):
        _ = Mixed(size=1).attributes


def test_pickle() -> None:
    op = Mixed(scale=3)
    op(np.ones(1), np.ones(1, np.int64), None)

    assert pickle.loads(pickle.dumps(op)).attributes == op.attributes


def test_path_from_the_folder_of_the_class(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cube_sum.cpp").write_text(CUBE_SUM)
    module = tmp_path / "declares_cube_sum.py"
    module.write_text(
        "from deep500.operators.custom.cpp_op import CppOp\n"
        "class FromFile(CppOp):\n    name = 'cube_sum'\n    source = 'cube_sum.cpp'\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    import declares_cube_sum  # type: ignore[import-not-found]

    op = declares_cube_sum.FromFile()

    assert op.library.description.outputs == 2
    assert op.differentiable


def test_dtypes_that_the_source_lacks() -> None:
    class Promises(CppOp):
        name = "cube_sum"
        source = CUBE_SUM
        dtypes = ("float32", "bfloat16")

    with pytest.raises(
        OperatorError, match=r"Promises promises the dtypes bfloat16; its C.. code has only float32, fl"
    ):
        _ = Promises().library


def test_no_source() -> None:
    class Empty(CppOp):
        pass

    with pytest.raises(OperatorError, match="Empty has no source"):
        Empty()


def test_wrong_name() -> None:
    class Other(CppOp):
        name = "cubes"
        source = CUBE_SUM

    with pytest.raises(OperatorError, match=r"has no function d5_cubes_describe.*D500_OPERATOR\(cubes, Class\)"):
        Other()(np.ones((1, 1)))


def test_source_that_is_not_there() -> None:
    class Lost(CppOp):
        source = "lost.cpp"

    with pytest.raises(CompileError, match=r"lost.cpp cannot be read: No such file"):
        Lost()(np.ones(1))
