"""Operators in Python, in PyTorch: values, derivatives, tracing, shared memory, and errors."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from deep500.core.errors import MissingDependencyError, OperatorError  # noqa: E402
from deep500.frameworks.pytorch import custom_op  # noqa: E402
from deep500.frameworks.pytorch._python_kernels import _Place  # noqa: E402
from deep500.operators.custom import CustomPythonOp  # noqa: E402

WIDE = torch.float64


def random(*shape: int, seed: int = 0, dtype: Any = WIDE, grad: bool = False) -> Any:
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(shape, generator=generator, dtype=WIDE).to(dtype).requires_grad_(grad)


class IPow(CustomPythonOp):
    """As in the published examples: a list of inputs, their number not said."""

    def __init__(self, power: int) -> None:
        super().__init__()
        self.power = power

    def forward(self, inputs: Any) -> Any:
        return inputs[0] ** self.power

    def backward(self, grads: Any, fwd_inputs: Any, fwd_outputs: Any) -> Any:
        return grads[0] * self.power * (fwd_inputs[0] ** (self.power - 1))


class Rows(CustomPythonOp):
    """y = x * w, and the sums of the rows of y, times k where it is given; outputs of different shapes."""

    input_count = 3
    output_count = 2

    def infer(self, shapes: Any, dtypes: Any) -> Any:
        return [shapes[0], shapes[0][:1]], [dtypes[0], dtypes[0]]

    def forward(self, x: Any, w: Any, k: Any) -> Any:
        y = (x.T * w.T).T  # not row-major
        return y, y.sum(1) * (1 if k is None else k)

    def backward(self, grads: Any, fwd_inputs: Any, fwd_outputs: Any) -> Any:
        x, w, k = fwd_inputs
        g = grads[0] + (grads[1] * (1 if k is None else k))[:, None]
        return g * w, g * x, None if k is None else grads[1] * (x * w).sum(1)


class Same(CustomPythonOp):
    """Returns its input, twice, and a part of it."""

    output_count = 3

    def infer(self, shapes: Any, dtypes: Any) -> Any:
        return [shapes[0], shapes[0], (shapes[0][0] - 1,)], [dtypes[0]] * 3

    def forward(self, x: Any) -> Any:
        y = x.copy()
        return x, y, y[1:]


class Total(CustomPythonOp):
    """A sum, with no infer."""

    def forward(self, x: Any) -> Any:
        return np.sum(x)


class OtherTotal(Total):
    """The same, for a test that compiles it."""


class Guilty(CustomPythonOp):
    """Changes its input."""

    def forward(self, x: Any) -> Any:
        x += 1
        return x


def rows_inputs() -> tuple[Any, Any, Any]:
    return random(3, 4, grad=True), random(3, 4, seed=1, grad=True), random(3, seed=2, grad=True)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.int32], ids=str)
def test_values_in_every_dtype(dtype: Any) -> None:
    x = (random(3, 4) * 4).to(dtype)

    y = custom_op(IPow(2))(x)

    assert y.dtype == dtype
    torch.testing.assert_close(y, x**2)


def test_gradients() -> None:
    x, w, k = rows_inputs()
    rows = custom_op(Rows())

    assert torch.autograd.gradcheck(custom_op(IPow(3)), (x,))
    assert torch.autograd.gradcheck(rows, (x, w, k))
    assert torch.autograd.gradcheck(lambda a, b: rows(a, b, None), (x, w))
    (only,) = torch.autograd.grad(rows(x, w, k)[1].sum(), w)
    torch.testing.assert_close(only, x * k[:, None])


def test_pytorch_checks_the_operator() -> None:
    x, w, k = rows_inputs()
    cases = [(custom_op(IPow(3)), ([x],)), (custom_op(Rows()), (x, w, k)), (custom_op(Rows()), (x, w, None))]

    for function, arguments in cases:
        assert set(torch.library.opcheck(function.overload, arguments).values()) == {"SUCCESS"}


def test_one_compiled_graph_serves_all_shapes() -> None:
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    rows, power = custom_op(Rows()), custom_op(IPow(2))
    compiled = torch.compile(lambda x, w, k: rows(power(x), w, k), fullgraph=True, dynamic=True, backend="aot_eager")

    for size in (3, 5, 6):
        x, w, k = random(size, 4, grad=True), random(size, 4, seed=1), random(size, seed=2)
        found, expected = compiled(x, w, k), rows(x**2, w, k)
        torch.testing.assert_close(found, expected)
        torch.testing.assert_close(torch.autograd.grad(found[1].sum(), x), torch.autograd.grad(expected[1].sum(), x))
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == 1


def test_a_graph_is_not_wrong_for_want_of_an_infer() -> None:
    torch._dynamo.reset()
    total = custom_op(OtherTotal())

    assert total(random(4)).shape == ()  # there is nothing to know beforehand
    with pytest.raises(OperatorError, match=r"torch.compile was told torch.float64 of shape \(4,\)"):
        torch.compile(total, fullgraph=True, backend="aot_eager")(random(4))


def test_results_that_share_memory_are_copied() -> None:
    x = random(4)

    first, second, third = custom_op(Same())(x)
    x.zero_()
    second.zero_()

    torch.testing.assert_close(first, random(4))
    torch.testing.assert_close(third, random(4)[1:])


def test_an_operator_cannot_change_its_inputs() -> None:
    x = random(4)

    with pytest.raises(ValueError, match="read-only"):
        custom_op(Guilty())(x)
    torch.testing.assert_close(x, random(4))


def test_memory_of_the_inputs_is_shared() -> None:
    seen = []

    class Address(CustomPythonOp):
        def forward(self, x: Any) -> Any:
            seen.append(x.__array_interface__["data"][0])
            return x * 1

    x = random(4, 3)
    custom_op(Address())(x.T)
    custom_op(Address())(x.bfloat16())

    assert seen[0] == x.data_ptr()


def test_odd_tensors() -> None:
    power = custom_op(IPow(3))
    x = random(4, 5)

    for odd in (x.T, x[::2, 1:], x[0, 0], x[:0], x.expand(2, 4, 5), torch._neg_view(x), torch.complex(x, x).conj()):
        torch.testing.assert_close(power(odd), odd**3)


def test_derivatives_that_do_not_exist_are_errors() -> None:
    x, function = random(3, grad=True), custom_op(IPow(3))
    (gradient,) = torch.autograd.grad(function(x).sum(), x, create_graph=True)

    torch.testing.assert_close(gradient, 3 * x**2)
    with pytest.raises(OperatorError, match="IPow cannot be differentiated twice"):
        gradient.sum().backward()
    with pytest.raises(OperatorError, match="no forward-mode derivative"):
        torch.func.jvp(function, (x.detach(),), (x.detach(),))
    with pytest.raises(OperatorError, match=r"torch\.func cannot differentiate"):
        torch.func.grad(lambda a: function(a).sum())(x)
    with pytest.raises(OperatorError, match="Total cannot be differentiated: it has no backward"):
        custom_op(Total())(x).backward()


def test_what_is_no_input_is_refused() -> None:
    x = random(3, 4)

    for arguments, message in [
        ((x, x), "Rows was given 2 inputs; accepted are 3"),
        ((x, x, 3.0), "accepted are torch.Tensor"),
        ((x, x.to("meta"), None), "on cpu and on meta"),
        ((x.to_sparse(), x, None), "dense tensors"),
        ((None, None, None), "was given no tensor"),
    ]:
        with pytest.raises(OperatorError, match=message):
            custom_op(Rows())(*arguments)


def test_what_the_authors_code_raises_comes_out_as_it_is() -> None:
    class Broken(CustomPythonOp):
        def forward(self, x: Any) -> Any:
            raise LookupError("the cupboard is bare")

    with pytest.raises(LookupError, match="the cupboard is bare"):
        custom_op(Broken())(random(2))


def test_a_gpu_without_cupy(monkeypatch: pytest.MonkeyPatch) -> None:
    class OnGpu(IPow):
        array_module = "cupy"

    class Far:
        device = torch.device("cuda", 0)
        layout = torch.strided

    monkeypatch.setitem(sys.modules, "cupy", None)

    with pytest.raises(MissingDependencyError, match=r"deep500\[cuda\]"):
        _Place(OnGpu(2), [Far()])  # type: ignore[list-item]
    torch.testing.assert_close(custom_op(OnGpu(2))(random(3)), random(3) ** 2)  # on the processor NumPy does


@pytest.mark.gpu
@pytest.mark.parametrize("module", ["numpy", "cupy"])
def test_on_a_gpu(module: str) -> None:
    pytest.importorskip(module)
    if not torch.cuda.is_available():
        pytest.skip("PyTorch sees no GPU")

    class OnGpu(IPow):
        array_module = module

    x = random(3, 4).cuda().requires_grad_()
    with torch.cuda.stream(torch.cuda.Stream()):
        y = custom_op(OnGpu(3))(x * 2)
        y.sum().backward()
    torch.cuda.synchronize()

    assert y.device == x.device
    torch.testing.assert_close(y, (2 * x) ** 3)
    torch.testing.assert_close(x.grad, 24 * x.detach() ** 2)
