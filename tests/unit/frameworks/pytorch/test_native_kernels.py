"""Native operators in PyTorch: values, derivatives, odd tensors, tracing, and errors."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from hypothesis import given  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

from deep500.core.errors import OperatorError  # noqa: E402
from deep500.frameworks.pytorch import custom_op  # noqa: E402
from deep500.operators.custom import NativeOp  # noqa: E402
from tests.unit.frameworks.pytorch import support  # noqa: E402

WIDE = torch.float64


def random(*shape: int, seed: int = 0, dtype: Any = WIDE, grad: bool = False) -> Any:
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(shape, generator=generator, dtype=WIDE).to(dtype).requires_grad_(grad)


def pick_inputs(dtype: Any = WIDE, grad: bool = True) -> tuple[Any, Any, Any]:
    generator = torch.Generator().manual_seed(7)
    k = torch.randint(0, 5, (3, 4), generator=generator)
    return random(3, 4, dtype=dtype, grad=grad), random(5, seed=1, dtype=dtype, grad=grad), k


CASES: dict[str, tuple[Callable[[], NativeOp], Callable[[], tuple[Any, ...]]]] = {
    "ipow": (support.ipow, lambda: (random(3, 4, grad=True),)),
    "pick": (support.pick, pick_inputs),
    "squash": (support.squash, lambda: (random(3, 4, grad=True), random(3, 4, seed=1, grad=True))),
    "shift": (support.shift, lambda: (random(3, 4), random(3, 4, seed=1))),
    "shift by nothing": (support.shift, lambda: (random(3, 4), None)),
}


def floats(results: Any) -> Any:
    """Return those results that can have a gradient."""
    results = results if isinstance(results, tuple) else (results,)
    return tuple(y for y in results if y.is_floating_point())


# --- values and derivatives -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
def test_values_and_gradients_are_those_of_the_formula(dtype: Any) -> None:
    x = random(5, 7, dtype=dtype, grad=True)

    y = custom_op(support.ipow())(x)
    y.backward(torch.ones_like(y))

    tolerance = {torch.float32: 1e-6, torch.float64: 1e-12, torch.bfloat16: 1e-2}[dtype]
    torch.testing.assert_close(y, (x.double() ** 3).to(dtype), rtol=tolerance, atol=0)
    torch.testing.assert_close(x.grad, (3 * x.double() ** 2).to(dtype), rtol=tolerance, atol=0)
    assert y.dtype == x.grad.dtype == dtype


@pytest.mark.parametrize("case", ["ipow", "pick", "squash"])
def test_gradients_are_those_of_differences(case: str) -> None:
    make, inputs = CASES[case]
    function = custom_op(make())

    assert torch.autograd.gradcheck(lambda *x: floats(function(*x)), inputs())


def test_a_gradient_that_is_wrong_by_a_hundredth_is_found() -> None:
    from torch.autograd.gradcheck import GradcheckError

    with pytest.raises(GradcheckError, match="Jacobian mismatch"):
        torch.autograd.gradcheck(custom_op(support.ipow(error=0.01)), (random(4, grad=True),))


@pytest.mark.parametrize("case", CASES)
def test_pytorch_checks_the_operator(case: str) -> None:
    make, inputs = CASES[case]

    found = torch.library.opcheck(custom_op(make()).overload, inputs())

    assert set(found.values()) == {"SUCCESS"}
    assert len(found) == 4


def test_gradients_of_some_outputs_and_by_some_inputs() -> None:
    x, w, k = pick_inputs()
    function = custom_op(support.pick())

    (by_first,) = torch.autograd.grad(function(x, w, k)[0].sum(), x)
    (by_second,) = torch.autograd.grad(function(x, w, k)[1], w)
    (only,) = torch.autograd.grad(function(x.detach(), w, k)[1], w)

    torch.testing.assert_close(by_first, 2 * w[k])
    expected = torch.zeros(5, dtype=WIDE).index_add(0, k.flatten(), 2 * x.detach().flatten())
    torch.testing.assert_close(by_second, expected)
    torch.testing.assert_close(only, expected)


def test_gradient_by_one_of_two_inputs_that_are_not_kept() -> None:
    x, y = random(4, grad=True), random(4, seed=1)

    z, positive = custom_op(support.squash())(x, y)
    (gradient,) = torch.autograd.grad(z.sum(), x)

    torch.testing.assert_close(gradient, 1 - torch.tanh(x + y) ** 2)
    assert positive.dtype == torch.int32
    assert not positive.requires_grad


def test_inputs_that_the_backward_does_not_read_are_freed() -> None:
    x = random(4, grad=True)
    hidden = x * 2
    memory = weakref.ref(hidden.untyped_storage())

    z = custom_op(support.squash())(hidden, hidden.detach() * 0)[0]
    del hidden
    gc.collect()

    assert memory() is None
    z.sum().backward()
    torch.testing.assert_close(x.grad, 2 * (1 - z.detach() ** 2))


def test_nothing_is_recorded_without_need() -> None:
    function, x = custom_op(support.ipow()), random(3, grad=True)

    with torch.no_grad():
        assert function(x).grad_fn is None
    with torch.inference_mode():
        y = function(x)
    assert y.is_inference()
    assert function(x.detach()).grad_fn is None
    assert "test_ipow" in function(x).grad_fn.name()


def test_attributes_belong_to_the_operator() -> None:
    x = random(3)

    for power in (0, 1, 2, 5):
        torch.testing.assert_close(custom_op(support.ipow(power))(x), x**power)
    torch.testing.assert_close(custom_op(support.pick(0.5))(x, x, torch.tensor([0, 1, 2]))[0], 0.5 * x * x)


# --- second derivatives -----------------------------------------------------------------------------------------------


def test_second_derivatives_where_the_library_has_them() -> None:
    x = random(3, 2, grad=True)
    function = custom_op(support.ipow(4))

    assert torch.autograd.gradgradcheck(function, (x,))
    hessian = torch.autograd.functional.hessian(lambda a: function(a).sum(), x[0].detach())
    torch.testing.assert_close(hessian, torch.diag(12 * x[0].detach() ** 2))


def test_third_derivatives_are_an_error() -> None:
    x = random(3, grad=True)
    (first,) = torch.autograd.grad(custom_op(support.ipow(4))(x).sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x, create_graph=True)

    with pytest.raises(OperatorError, match="test_ipow cannot be differentiated three times"):
        second.sum().backward()


def test_second_derivatives_are_an_error_where_there_are_none() -> None:
    x, w, k = pick_inputs()
    (gradient,) = torch.autograd.grad(custom_op(support.pick())(x, w, k)[1], x, create_graph=True)

    torch.testing.assert_close(gradient, 2 * w[k])
    with pytest.raises(OperatorError, match="test_pick cannot be differentiated twice: its library has no second"):
        gradient.sum().backward()


def test_an_operator_without_backward_says_so() -> None:
    y = custom_op(support.shift())(random(3, grad=True), None)

    with pytest.raises(OperatorError, match="test_shift cannot be differentiated: its library has no backward"):
        y.sum().backward()


def test_forward_mode_is_an_error() -> None:
    x = random(3)

    with pytest.raises(OperatorError, match="no forward-mode derivative"):
        torch.func.jvp(custom_op(support.ipow()), (x,), (x,))


# --- odd tensors ------------------------------------------------------------------------------------------------------


@st.composite
def odd_tensors(draw: Any) -> Any:
    """Return a tensor of any rank, with steps, gaps, swapped dimensions, an offset, or repeated elements."""
    shape = draw(st.lists(st.integers(0, 4), max_size=4))
    steps = [draw(st.integers(1, 3)) for _ in shape]
    base = random(*(size * step + 1 for size, step in zip(shape, steps)), seed=draw(st.integers(0, 99)))
    tensor = base[tuple(slice(1, 1 + size * step, step) for size, step in zip(shape, steps))]
    if shape:
        tensor = tensor.permute(draw(st.permutations(range(len(shape)))))
    if draw(st.booleans()):
        tensor = tensor.unsqueeze(0).expand(draw(st.integers(0, 3)), *tensor.shape)
    return torch._neg_view(tensor) if draw(st.booleans()) else tensor


@given(odd_tensors(), st.data())
def test_tensors_of_any_strides(x: Any, data: Any) -> None:
    leaf = x.detach().requires_grad_()
    y = custom_op(support.ipow())(leaf)

    torch.testing.assert_close(y, x**3)
    assert y.is_contiguous()
    incoming = data.draw(st.sampled_from(["plain", "expanded", "negated"]))
    g = random(*x.shape, seed=5) if incoming == "plain" else torch.ones((), dtype=WIDE).expand(x.shape)
    g = torch._neg_view(g) if incoming == "negated" else g
    (gradient,) = torch.autograd.grad(y, leaf, g)
    torch.testing.assert_close(gradient, g * 3 * x**2)


@pytest.mark.parametrize("offset", [1, 2, 3, 5])
def test_unaligned_tensors(offset: int) -> None:
    memory = bytearray(offset) + bytearray(random(33, dtype=torch.float32).numpy().tobytes())
    x = torch.frombuffer(memory, dtype=torch.float32, offset=offset)
    assert x.data_ptr() % 4

    torch.testing.assert_close(custom_op(support.ipow())(x), x.clone() ** 3)


def test_a_tensor_that_was_changed_in_place_is_refused() -> None:
    x = random(3, grad=True)
    hidden = x * 1
    y = custom_op(support.ipow())(hidden)
    hidden.add_(1)

    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_a_graph_runs_twice_only_if_it_is_retained() -> None:
    x = random(3, grad=True)
    y = custom_op(support.ipow())(x).sum()

    y.backward(retain_graph=True)
    y.backward()
    torch.testing.assert_close(x.grad, 6 * x.detach() ** 2)
    with pytest.raises(RuntimeError, match="second time"):
        y.backward()


def test_checkpointing_and_hooks_on_saved_tensors() -> None:
    from torch.utils.checkpoint import checkpoint

    x, function = random(3, grad=True), custom_op(support.ipow())
    checkpoint(lambda a: function(function(a)), x, use_reentrant=False).sum().backward()
    packed = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: packed.append(t) or t, lambda t: t):
        function(x)

    torch.testing.assert_close(x.grad, 9 * x.detach() ** 8)
    assert [p.shape for p in packed] == [x.shape]


@pytest.mark.parametrize("count", [1, 40])
def test_backward_in_several_threads(count: int) -> None:
    function = custom_op(support.ipow())
    shared = random(64, grad=True)
    y = function(shared).sum()

    def run(seed: int) -> tuple[Any, Any]:
        x = random(64, seed=seed, grad=True)
        function(function(x)).sum().backward()
        return x, torch.autograd.grad(y, shared, retain_graph=True)[0]

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(run, range(count)))

    for x, gradient in results:
        torch.testing.assert_close(x.grad, 9 * x.detach() ** 8)
        torch.testing.assert_close(gradient, 3 * shared.detach() ** 2)


# --- tracing ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_one_compiled_graph_serves_all_shapes(backend: str) -> None:
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    power, pick = custom_op(support.ipow()), custom_op(support.pick())

    def function(x: Any, w: Any, k: Any) -> Any:
        y, s = pick(power(x), w, k)
        return power(y), s

    compiled = torch.compile(function, fullgraph=True, dynamic=True, backend=backend)
    for rows in (2, 3, 7):
        x, w, k = random(rows, 4, grad=True), random(5, grad=True), torch.arange(rows * 4).reshape(rows, 4) % 5
        found, expected = compiled(x, w, k), function(x, w, k)
        torch.testing.assert_close(found, expected)
        torch.testing.assert_close(
            torch.autograd.grad(found[0].sum() + found[1], (x, w)),
            torch.autograd.grad(expected[0].sum() + expected[1], (x, w)),
        )
    counters = torch._dynamo.utils.counters
    assert counters["stats"]["unique_graphs"] == 1
    assert not counters["graph_break"]


def test_compiled_backward_of_inputs_that_are_not_kept() -> None:
    torch._dynamo.reset()
    squash = custom_op(support.squash())
    compiled = torch.compile(lambda x, y: squash(x, y)[0], fullgraph=True, dynamic=True, backend="aot_eager")

    for size in (3, 4):
        x, y = random(size, grad=True), random(size, seed=1)
        (gradient,) = torch.autograd.grad(compiled(x, y).sum(), x)
        torch.testing.assert_close(gradient, 1 - torch.tanh(x + y) ** 2)


def test_exported_program_with_dynamic_sizes() -> None:
    class Module(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.power = custom_op(support.ipow())

        def forward(self, x: Any) -> Any:
            return self.power(x) + 1

    rows = torch.export.Dim("rows", min=2)
    program = torch.export.export(Module(), (random(3, 4),), dynamic_shapes={"x": {0: rows}})

    targets = [str(node.target) for node in program.graph.nodes if node.op == "call_function"]
    assert targets[0].startswith("deep500.test_ipow")
    torch.testing.assert_close(program.module()(random(9, 4)), random(9, 4) ** 3 + 1)


def test_shapes_are_inferred_once_for_each_combination() -> None:
    asked = []

    def infer(shapes: Any, dtypes: Any) -> Any:
        asked.append((tuple(shapes), tuple(dtypes)))
        return [shapes[0], ()], [dtypes[0], dtypes[0]]

    function = custom_op(NativeOp(support.pick().library, infer=infer))
    x, w, k = pick_inputs()
    for _ in range(3):
        function(x, w, k)
        function(x[:2], w, k[:2])
        function(x.float(), w.float(), k)[0].sum().backward()

    assert len(asked) == 3
    assert asked[1] == (((2, 4), (5,), (2, 4)), ("float64", "float64", "int64"))


# --- errors -----------------------------------------------------------------------------------------------------------


def test_errors_of_the_operator_keep_their_text() -> None:
    with pytest.raises(OperatorError, match=r"^test_ipow: power is negative: -2$"):
        custom_op(support.ipow(-2))(random(3))
    y = custom_op(support.ipow(1000))(random(3, grad=True))
    with pytest.raises(OperatorError, match=r"^test_ipow: the backward is tired$"):
        y.sum().backward()
    x, w, k = pick_inputs()
    with pytest.raises(OperatorError, match=r"there is no w\[9\]"):
        custom_op(support.pick())(x, w, k + 9 - k)


def refused(change: Callable[[Any, Any, Any], tuple[Any, ...]]) -> str:
    with pytest.raises(OperatorError) as caught:
        custom_op(support.pick())(*change(*pick_inputs()))
    return str(caught.value)


def test_what_is_no_input_is_refused() -> None:
    assert "inputs of the dtypes (float32, float64, int64)" in refused(lambda x, w, k: (x.float(), w, k))
    assert "inputs of the dtypes (float16, float16, int64)" in refused(lambda x, w, k: (x.half(), w.half(), k))
    assert "was given 2 inputs; accepted are 3" in refused(lambda x, w, k: (x, w))
    assert "input 1 is absent" in refused(lambda x, w, k: (x, None, k))
    assert "accepted are torch.Tensor" in refused(lambda x, w, k: (x, w, k.numpy()))
    assert "accepted are dense tensors" in refused(lambda x, w, k: (x.detach().to_sparse(), w, k))
    assert "w has the shape (1, 5)" in refused(lambda x, w, k: (x, w.reshape(1, 5), k))  # by infer
    assert "on cpu and on meta" in refused(lambda x, w, k: (x, w.detach().to("meta"), k))
    assert "float8_e5m2" in refused(lambda x, w, k: (x.to(torch.float8_e5m2), w, k))


def test_tensors_without_data_only_have_a_shape() -> None:
    y, s = custom_op(support.pick())(*(x.detach().to("meta") for x in pick_inputs()))

    assert (y.shape, s.shape, y.device.type) == ((3, 4), (), "meta")
