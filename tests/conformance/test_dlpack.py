"""Tensors of other libraries are fed through DLPack, without a copy where that is possible."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx.helper as oh
import pytest

from deep500.core.errors import InvalidInputError
from deep500.frameworks import FRAMEWORKS, installed_frameworks
from deep500.networks import Network


class Foreign:
    """A tensor of a library that nobody knows, which speaks DLPack and nothing else."""

    def __init__(self, array: np.ndarray, *, fails: bool = False) -> None:
        self.array, self.fails, self.asked = array, fails, 0

    def __dlpack__(self, **options: Any) -> Any:
        self.asked += 1
        if self.fails:
            raise BufferError("cannot be exported")
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()


def executor_of(framework: str) -> Any:
    values = [oh.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["n", 3]) for name in "xy"]
    graph = oh.make_graph([oh.make_node("Neg", ["x"], ["y"])], "negated", values[:1], values[1:])
    network = Network.load(oh.make_model(graph, opset_imports=[oh.make_opsetid("", 23)], ir_version=11))
    return FRAMEWORKS.get(framework).from_model(network)


@pytest.fixture(params=installed_frameworks())
def executor(request: pytest.FixtureRequest) -> Any:
    return executor_of(request.param)


def test_foreign_tensors_are_taken(executor: Any) -> None:
    x = Foreign(np.arange(6, dtype=np.float32).reshape(2, 3))

    y = executor.to_numpy(executor.inference({"x": x})["y"])

    assert x.asked > 0
    np.testing.assert_array_equal(y, -x.array)


@pytest.mark.parametrize("framework", [name for name in installed_frameworks() if name != "tensorflow"])
def test_memory_is_shared(framework: str) -> None:
    # TensorFlow copies: its own import aborts the process on memory that is not aligned as it wants.
    executor = executor_of(framework)
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    taken = executor.to_native(executor.from_dlpack(Foreign(x)), executor.network.inputs["x"])
    x[0, 0] = 7

    assert executor.to_numpy(taken)[0, 0] == 7


def test_wrong_tensors_are_refused(executor: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"given as float64\[2, 3\]"):
        executor.inference({"x": Foreign(np.zeros((2, 3)))})
    with pytest.raises(InvalidInputError, match="'x'"):
        executor.inference({"x": Foreign(np.zeros((2, 3), np.float32), fails=True)})


def test_tensors_of_pytorch_are_fed_to_all(executor: Any) -> None:
    torch = pytest.importorskip("torch")
    x = torch.arange(6, dtype=torch.float32).reshape(2, 3)

    np.testing.assert_array_equal(executor.to_numpy(executor.inference({"x": x})["y"]), -x.numpy())


def test_a_tensor_that_requires_a_gradient_is_told_by_its_input(executor: Any) -> None:
    torch = pytest.importorskip("torch")
    x = torch.ones(2, 3, requires_grad=True)

    if executor.framework == "pytorch":
        assert executor.inference({"x": x})["y"].shape == (2, 3)
        return
    with pytest.raises(InvalidInputError, match=r"given for 'x' is no tensor.*requires grad"):
        executor.inference({"x": x})
