"""What ``custom_op`` takes, and a program that outlives its process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from deep500.core.errors import OperatorError  # noqa: E402
from deep500.frameworks.pytorch import custom_op  # noqa: E402
from deep500.operators.custom import CustomPythonOp  # noqa: E402
from tests.unit.frameworks.pytorch import support  # noqa: E402


class Nothing(CustomPythonOp):
    input_count = 0

    def forward(self) -> Any:
        return 1.0


@pytest.mark.parametrize("given", [torch.relu, "ipow", None, Nothing], ids=["function", "text", "nothing", "class"])
def test_what_is_no_operator_is_refused(given: Any) -> None:
    with pytest.raises(OperatorError, match="accepted is an object of a CustomOp"):
        custom_op(given)


def test_an_operator_needs_an_input() -> None:
    with pytest.raises(OperatorError, match="Nothing has no inputs"):
        custom_op(Nothing())


def test_operators_in_python_need_no_compiler() -> None:
    script = """
import torch
from deep500.frameworks.pytorch import custom_op
from deep500.operators.custom import CustomPythonOp
class Twice(CustomPythonOp):
    def forward(self, x):
        return 2 * x
print(custom_op(Twice())(torch.ones(2)).tolist())
"""
    environment = {"PATH": "", "CXX": "/nowhere/g++", "DEEP500_NATIVE_CACHE": "/nowhere"}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, env=environment)

    assert done.stdout.strip() == "[2.0, 2.0]", done.stderr


def test_both_kinds_in_one_module_under_an_optimizer() -> None:
    class Cube(CustomPythonOp):
        def forward(self, x: Any) -> Any:
            return x**3

        def backward(self, grads: Any, fwd_inputs: Any, fwd_outputs: Any) -> Any:
            return grads[0] * 3 * fwd_inputs[0] ** 2

    results = []
    for cube in (custom_op(Cube()), custom_op(support.ipow(3)), lambda x: x**3):
        weight = torch.nn.Parameter(torch.full((4,), 0.5, dtype=torch.float64))
        optimizer = torch.optim.SGD([weight], lr=0.1)
        for _ in range(5):
            optimizer.zero_grad()
            ((cube(weight) - 1) ** 2).sum().backward()
            optimizer.step()
        results.append(weight.detach())

    torch.testing.assert_close(results[0], results[2])
    torch.testing.assert_close(results[1], results[2])


def test_an_exported_program_runs_in_another_process(tmp_path: Path) -> None:
    class Module(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return custom_op(support.ipow(2))(x) + 1

    program = torch.export.export(Module(), (torch.ones(3),), dynamic_shapes={"x": {0: torch.export.Dim("n", min=2)}})
    torch.export.save(program, tmp_path / "program.pt2")
    script = f"""
import torch
from deep500.frameworks.pytorch import custom_op
from tests.unit.frameworks.pytorch import support
custom_op(support.ipow(2))
print(torch.export.load({str(tmp_path / "program.pt2")!r}).module()(torch.arange(5.0)).tolist())
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)

    assert done.stdout.strip() == "[1.0, 2.0, 5.0, 10.0, 17.0]", done.stderr


def complex_numbers(offset: int) -> Any:
    """Return five complex numbers at an address that is no multiple of 16, where PyTorch's own copies may crash."""
    values = torch.arange(10, dtype=torch.float64)
    memory = bytearray(offset) + bytearray(values.numpy().tobytes())
    x = torch.frombuffer(memory, dtype=torch.complex128, offset=offset)
    assert x.data_ptr() % 16 == offset
    return x, torch.complex(values[::2], values[1::2]) * (1 + 2j)


@pytest.mark.parametrize("offset", [1, 8])
def test_complex_numbers_at_odd_addresses(offset: int) -> None:
    x, expected = complex_numbers(offset)
    torch.testing.assert_close(custom_op(support.turn())(x), expected)
    with pytest.raises(OperatorError, match="test_turn was given complex numbers with gaps"):
        custom_op(support.turn())(x[::2])


def test_zeros_without_memory() -> None:
    zeros = torch._efficientzerotensor(3, dtype=torch.float64)
    assert custom_op(support.ipow(0))(zeros).tolist() == [1.0, 1.0, 1.0]


@pytest.mark.gpu
def test_a_library_without_cuda_refuses_a_tensor_on_a_gpu() -> None:
    if not torch.cuda.is_available():
        pytest.skip("PyTorch sees no GPU")
    with pytest.raises(OperatorError, match="its library has code for the CPU only"):
        custom_op(support.ipow())(torch.ones(2).cuda())
