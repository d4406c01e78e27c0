"""Every native operator on a GPU in PyTorch, against what is right on the processor; CuPy arrays without copies."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from deep500.core.errors import OperatorError
from deep500.frameworks import FRAMEWORKS
from deep500.operators.custom.custom_op import CustomPythonOp
from deep500.operators.native.devices import cuda_device_count
from native_ops import IPow, SoftmaxCrossEntropy, SparseTopK
from tests.conformance.native_op_cases import CASES, ONE_EACH, cast, is_float, make_case

pytestmark = pytest.mark.gpu

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("PyTorch sees no GPU", allow_module_level=True)

from deep500.frameworks.pytorch._arrays import to_array, to_tensor  # noqa: E402 - needs torch

DTYPES = [np.dtype(d) for d in (np.float32, np.float64, ml_dtypes.bfloat16, np.float16)]


@pytest.fixture(scope="module", autouse=True)
def compiled() -> None:
    """Compile all operators at once, for nvcc takes some seconds for each."""
    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda name: make_case(name).op.compiled_for("cuda").library, ONE_EACH))


def run_on_gpu(op: Any, inputs: Any, grads: Any) -> tuple[list[Any], list[Any]]:
    """Return outputs and gradients, computed on another stream than the default one."""
    tensors = [None if x is None else to_tensor(x).cuda() for x in inputs]
    leaves = [x.requires_grad_() for x in tensors if x is not None and x.is_floating_point()]
    known = [None if g is None else to_tensor(g).cuda() for g in grads]
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        outputs = FRAMEWORKS.get("pytorch").custom_op(op)(*tensors)
        outputs = list(outputs) if isinstance(outputs, tuple) else [outputs]
        gradients: list[Any] = []
        if op.differentiable:
            used = [(y, g) for y, g in zip(outputs, known) if g is not None]
            found = iter(torch.autograd.grad([y for y, _ in used], leaves, [g for _, g in used], allow_unused=True))
            gradients = [next(found) if x is not None and x.is_floating_point() else None for x in tensors]
    stream.synchronize()
    assert all(y.is_cuda for y in outputs)
    return [to_array(y.detach().cpu()) for y in outputs], [None if g is None else to_array(g.cpu()) for g in gradients]


def test_the_device_is_found_without_a_framework() -> None:
    assert cuda_device_count() == torch.cuda.device_count()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", sorted(CASES))
def test_values_and_gradients(name: str, dtype: Any) -> None:
    case = make_case(name)
    op = case.op.compiled_for("cuda")
    inputs, grads = case.cast(dtype), case.gradients(dtype)

    outputs, gradients = run_on_gpu(op, inputs, grads)

    case.check(inputs, grads, outputs, gradients)


@pytest.mark.parametrize("name", ONE_EACH)
def test_large_tensors_are_those_of_the_processor(name: str) -> None:
    op = make_case(name).op.compiled_for("cuda")
    inputs = cast(op, op.example_inputs(np.random.default_rng(0), "float64", large=True) or (), np.float64)
    expected = list(op.run_forward(inputs))
    grads = [np.ones_like(y) if is_float(y) else None for y in expected]
    if op.differentiable:
        expected += list(op.run_backward(grads, inputs, expected))
    outputs, gradients = run_on_gpu(op, inputs, grads)

    for found, wanted in zip([*outputs, *gradients], expected, strict=True):
        if wanted is None:
            assert found is None
        else:  # sums of up to 1e5 terms in float64, in another order
            scale = max(1.0, float(np.abs(wanted).max()))
            np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-10 * scale)


@pytest.mark.parametrize("name", ONE_EACH)
def test_memory_with_gaps(name: str) -> None:
    case = make_case(name)
    op = case.op.compiled_for("cuda")
    inputs = case.cast(np.float32)
    tensors = [None if x is None else to_tensor(x).cuda() for x in inputs]
    gappy = [x if x is None or x.dim() == 0 else x.repeat_interleave(2, dim=-1)[..., ::2] for x in tensors]
    function = FRAMEWORKS.get("pytorch").custom_op(op)

    for one, other in zip(_listed(function(*gappy)), _listed(function(*tensors)), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=0, equal_nan=True)


def test_second_derivatives() -> None:
    x = torch.tensor([0.5, -1.5], dtype=torch.float64, device="cuda", requires_grad=True)

    assert torch.autograd.gradgradcheck(FRAMEWORKS.get("pytorch").custom_op(IPow(power=3).compiled_for("cuda")), (x,))


def test_no_elements() -> None:
    custom_op = FRAMEWORKS.get("pytorch").custom_op
    empty = torch.empty(0, 3, device="cuda")

    assert custom_op(IPow(power=2).compiled_for("cuda"))(empty).shape == (0, 3)
    values, indices = custom_op(SparseTopK(k=0).compiled_for("cuda"))(empty)
    assert (values.shape, indices.shape) == ((0,), (0,))


def test_a_label_that_is_none_gives_nan() -> None:
    function = FRAMEWORKS.get("pytorch").custom_op(SoftmaxCrossEntropy(reduction="none").compiled_for("cuda"))
    loss, _ = function(torch.zeros(2, 3, device="cuda"), torch.tensor([0, 3], device="cuda"), None)

    assert torch.isnan(loss).tolist() == [False, True]


def test_a_build_for_the_processor_refuses_a_tensor_on_a_gpu() -> None:
    with pytest.raises(OperatorError, match="its library has code for the CPU only"):
        FRAMEWORKS.get("pytorch").custom_op(IPow(power=2).compiled_for("cpu"))(torch.ones(2, device="cuda"))


def test_compiled_graphs_run_the_kernels() -> None:
    function = FRAMEWORKS.get("pytorch").custom_op(IPow(power=3).compiled_for("cuda"))
    x = torch.rand(100, device="cuda")
    compiled = torch.compile(lambda x: function(x) + 1, backend="aot_eager", fullgraph=True)

    torch.testing.assert_close(compiled(x), x**3 + 1)


def test_cupy_arrays_share_the_memory_of_tensors() -> None:
    cupy = pytest.importorskip("cupy")
    seen: list[Any] = []

    class Cube(CustomPythonOp):
        array_module = "cupy"

        def forward(self, x: Any) -> Any:
            seen.append(x)
            return x**3

        def backward(self, grads: Any, fwd_inputs: Any, fwd_outputs: Any) -> Any:
            seen.append(fwd_inputs[0])
            return 3 * grads[0] * fwd_inputs[0] ** 2

    x = torch.rand(1000, device="cuda", requires_grad=True)
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        y = FRAMEWORKS.get("pytorch").custom_op(Cube())(x)
        y.sum().backward()
    stream.synchronize()

    assert all(isinstance(array, cupy.ndarray) and array.data.ptr == x.data_ptr() for array in seen)
    assert len(seen) == 2
    torch.testing.assert_close(y, x.detach() ** 3)
    torch.testing.assert_close(x.grad, 3 * x.detach() ** 2)


def _listed(outputs: Any) -> list[Any]:
    return list(outputs) if isinstance(outputs, tuple) else [outputs]
