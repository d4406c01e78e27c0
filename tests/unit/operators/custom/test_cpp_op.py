from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from deep500.core.errors import CompileError, OperatorError
from deep500.operators.custom import compiling
from deep500.operators.custom.compiling import compile_sources
from deep500.operators.custom.cpp_op import CppOp
from deep500.operators.native import _compiler, devices
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


# --- a build for GPUs -------------------------------------------------------------------------------------------------


class TwoSources(CppOp):
    """The form for authors: the second source would be CUDA."""

    name = "cube_sum"
    source = CUBE_SUM
    cuda_source = CUBE_SUM.replace("sums[i] = 0", "sums[i] = 100")
    flags = ("-DFOR_CPU",)
    cuda_flags = ("-DFOR_CUDA",)

    def infer(self, shapes: Any, dtypes: Any) -> Any:
        return [shapes[0], shapes[0][:1]], [dtypes[0], dtypes[0]]


@pytest.fixture
def builds(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What is compiled, by a compiler that takes what is for nvcc, too."""
    made: list[dict[str, Any]] = []

    def compile_instead(name: str, sources: Any, *, cuda: bool, **options: Any) -> Any:
        made.append({"cuda": cuda, "flags": options["flags"]})
        return compile_sources(name, sources, **options)

    monkeypatch.setattr(compiling, "compile_sources", compile_instead)
    monkeypatch.setattr(TwoSources, "_libraries", {})
    return made


def last_sum(op: CppOp) -> float:
    return float(op(np.ones((1, 2)))[1][0])


def test_the_processor_is_chosen_where_there_is_no_gpu(builds: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "cuda_device_count", lambda: 0)

    assert last_sum(TwoSources()) == 2.0
    assert builds == [{"cuda": False, "flags": ("-DFOR_CPU",)}]


def test_cuda_is_chosen_where_there_are_a_gpu_and_nvcc(builds: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "cuda_device_count", lambda: 1)
    monkeypatch.setattr(_compiler, "find_compiler", lambda cuda: None)

    assert last_sum(TwoSources()) == 102.0
    assert last_sum(TwoSources()) == 102.0
    assert builds == [{"cuda": True, "flags": ("-DFOR_CUDA",)}]


def test_the_processor_is_chosen_where_nvcc_is_missing(
    builds: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(devices, "cuda_device_count", lambda: 1)
    monkeypatch.setattr(_compiler, "find_compiler", lambda cuda: _compiler._no_cpp_compiler())

    with caplog.at_level("INFO"):
        assert last_sum(TwoSources()) == 2.0
    assert "TwoSources is compiled for the processor only" in caplog.text


def test_a_build_that_is_asked_for(builds: Any) -> None:
    cpu, cuda = TwoSources().compiled_for("cpu"), TwoSources().compiled_for("cuda")

    assert [last_sum(op) for op in (cpu, cuda, cpu, cuda)] == [2.0, 102.0, 2.0, 102.0]
    assert [build["cuda"] for build in builds] == [False, True]
    assert cuda.library is not cpu.library
    assert last_sum(pickle.loads(pickle.dumps(cuda))) == 102.0
    assert last_sum(cuda.with_attributes()) == 102.0


def test_builds_that_cannot_be() -> None:
    with pytest.raises(OperatorError, match=r"CubeSum has no cuda_source, so it cannot be compiled for CUDA"):
        CubeSum().compiled_for("cuda")
    with pytest.raises(OperatorError, match=r"compiled_for was given 'gpu'; accepted are 'cpu' and 'cuda'"):
        TwoSources().compiled_for("gpu")
    assert CubeSum().compiled_for("cpu").library.path == CubeSum().library.path
