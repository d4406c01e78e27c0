"""The operators that are called, in both C++ forms, with what they should compute and refuse, in NumPy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from deep500.core.tensor_descriptor import tensordesc
from deep500.operators.custom import NativeOp, compile_custom_cppop_inline
from tests.unit.frameworks.pytorch.support import pick, squash
from tests.unit.operators.sources import IPOWOP, cube_sum, failing, mixed

__all__ = ["CASES", "PLANTED", "Arrays", "Case", "Refused", "planted"]

Arrays = Sequence[np.ndarray | None]


class Refused(Exception):  # noqa: N818 - it is what should happen
    """These inputs are to be refused; the text says for which reason, in two or three words."""


#: A class with an input and an output of whole numbers, that throws whatever its first element says.
GAUGE = """
#include <deep500/deep500.h>

class gauge : public deep500::CustomOperator {
    int64_t length, factors;

    static int64_t size(const deep500::tensor_t& tensor) {
        int64_t result = 1;
        for (int i = 0; i < tensor.dims; ++i) result *= tensor.sizes[i];
        return result;
    }
  public:
    gauge(deep500::tensor_t* in, int, deep500::tensor_t*, int) : length(size(in[0])), factors(size(in[1])) {
        if (length > 0 && factors == 0) throw deep500::ArgumentError("there are no factors");
    }
    void forward(const double* x, const int64_t* k, double* y, int64_t* sizes) {
        if (length > 0 && x[0] == 5) throw std::runtime_error("the gauge is broken");
        if (length > 0 && x[0] == -5) throw 7;
        if (length > 0 && x[0] == 4) throw std::bad_alloc();
        for (int64_t i = 0; i < length; ++i) y[i] = x[i] * static_cast<double>(k[i % factors]);
        sizes[0] = length, sizes[1] = factors;
    }
    void backward(const double* y_gradient, const int64_t*, const double*, const int64_t* k, const double*,
                  const int64_t*, double* x_gradient, int64_t* k_gradient) {
        for (int64_t i = 0; i < length; ++i) x_gradient[i] = y_gradient[i] * static_cast<double>(k[i % factors]);
        for (int64_t i = 0; i < factors; ++i) k_gradient[i] = 0;
    }
};
D500_REGISTER_OP(gauge)
"""

#: What the job has to find: a write behind the end of the output, or an overflow that C++ does not define.
PLANTED = ("write", "overflow")

_PLANTED_SOURCE = """
#include <deep500/operator.h>

struct Planted {
    static constexpr auto attributes = deep500::attributes(deep500::text("what"));

    static void forward(deep500::View<const int32_t> x, deep500::View<int32_t> y, deep500::Attributes attributes) {
        const bool writes = attributes.text("what") == "write";
        int32_t* out = y.data();  // as pointers, whose bounds nobody else checks
        for (int64_t i = 0; i < x.size() + (writes ? 1 : 0); ++i) out[i] = 1;
        if (!writes) out[0] = x[0] + x[0];
    }
};
D500_OPERATOR(planted, Planted)
"""


def planted(what: str) -> NativeOp:
    """Return an operator with a bug; it shows with ``[2**31 - 1]`` of int32."""
    return compile_custom_cppop_inline("planted", _PLANTED_SOURCE, attributes={"what": what})


@dataclass(frozen=True, repr=False)
class Case:
    """An operator, and what is known of it.

    Attributes:
        name: What the summary calls it.
        make: Makes it.
        variants: The dtypes that may stand for T.
        inputs: Dtype of every input: ``"T"`` or a name; with ``"?"`` behind where it may be absent.
        forward: Returns the outputs, as float64 where they are floats; raises :class:`Refused`.
        backward: Returns the gradients by the float inputs, from those by the outputs (zeros where unknown), the inputs
            and the outputs; ``None`` where the operator has no backward.
        shapes: How inputs are shaped as a rule: ``"any"``, ``"matrix"``, ``"vector"``, or ``"first"``: as the first.
        ranges: Smallest and largest value of every input.
    """

    name: str
    make: Callable[[], NativeOp]
    variants: tuple[str, ...]
    inputs: tuple[str, ...]
    forward: Callable[..., list[np.ndarray]]
    backward: Callable[..., list[np.ndarray | None]] | None = None
    shapes: tuple[str, ...] = ("any",)
    ranges: tuple[tuple[int, int], ...] = ((-8, 8), (-8, 8), (-8, 8))

    def __repr__(self) -> str:
        return self.name

    @cached_property
    def op(self) -> NativeOp:
        return self.make()

    def expected(self, arrays: Arrays) -> list[np.ndarray]:
        """Return the outputs that these inputs should give.

        Raises:
            Refused: They should give none.
        """
        self.variant(arrays)
        return self.forward(*[_widened(x) for x in arrays])

    def variant(self, arrays: Arrays) -> str:
        """Return the dtype that stands for T.

        Raises:
            Refused: There is none, or an input is missing.
        """
        if len(arrays) != len(self.inputs):
            raise Refused("number of inputs")
        if any(x is None and not kind.endswith("?") for x, kind in zip(arrays, self.inputs)):
            raise Refused("absent input")
        for variant in self.variants:
            if all(x is None or x.dtype.name == name for x, name in zip(arrays, self.dtypes(variant))):
                return variant
        raise Refused("dtype")

    def dtypes(self, variant: str) -> list[str]:
        """Return the dtype of every input where one stands for T."""
        return [variant if kind[0] == "T" else kind.rstrip("?") for kind in self.inputs]


def _widened(x: np.ndarray | None) -> np.ndarray | None:
    return x if x is None or x.dtype.kind in "iub" else x.astype(np.float64)


def _mixed(x: Any, labels: Any, shift: Any) -> list[Any]:
    if shift is not None and shift.shape != x.shape:
        raise Refused("shapes that differ")
    return [3 * x + (0 if shift is None else shift), np.array([labels.sum() - 1])]


def _mixed_backward(grads: Any, inputs: Any, outputs: Any) -> list[Any]:
    return [3 * grads[0], None, None if inputs[2] is None else grads[0]]


def _cube_sum(x: Any) -> list[Any]:
    if x.ndim != 2:
        raise Refused("rank")
    return [x * x * x, x.sum(1)]


def _gauge(x: Any, k: Any) -> list[Any]:
    if x.size and not k.size:
        raise Refused("sizes that do not fit")
    if x.size and x.ravel()[0] in (5, -5, 4):
        raise Refused("thrown by the operator")
    return [x * _factors(x, k), np.array([x.size, k.size])]


def _factors(x: Any, k: Any) -> Any:
    return np.resize(k, x.shape) if x.size else np.zeros(x.shape)


def _pick(x: Any, w: Any, k: Any) -> list[Any]:
    if w.ndim != 1:
        raise Refused("rank")
    taken = k.ravel()[: x.size]
    if taken.size < x.size or (taken < 0).any() or (taken >= w.size).any():
        raise Refused("index outside")
    y = 2 * x * w[taken].reshape(x.shape)
    return [y, np.asarray(y.sum())]


def _pick_backward(grads: Any, inputs: Any, outputs: Any) -> list[Any]:
    x, w, k = inputs
    taken, incoming = k.ravel()[: x.size], grads[0] + grads[1]
    by_w = np.zeros(w.shape)
    np.add.at(by_w, taken, (2 * incoming * x).ravel())
    return [2 * incoming * w[taken].reshape(x.shape), by_w, None]


def _squash(x: Any, y: Any) -> list[Any]:
    if x.shape != y.shape:
        raise Refused("shapes that differ")
    return [np.tanh(x + y), (x + y > 0).astype(np.int32)]


def _failing(how: str, x: Any) -> list[Any]:
    if how:
        raise Refused("thrown by the operator")
    return [x]


def _ipowop() -> NativeOp:
    every = [tensordesc("float64", None)]
    return compile_custom_cppop_inline("ipowop", IPOWOP, every, every, additional_definitions={"DPOWER": 3})


def _made_gauge() -> NativeOp:
    return compile_custom_cppop_inline(
        "gauge", GAUGE, infer=lambda shapes, dtypes: ([shapes[0], (2,)], ["float64", "int64"])
    )


CASES: tuple[Case, ...] = (
    Case(
        "struct, optional input", partial(mixed, scale=3.0), ("float32", "float64", "bfloat16", "float16"),
        ("T", "int64", "T?"), _mixed, _mixed_backward, ("any", "any", "first"),
    ),
    Case(
        "struct, two indices", cube_sum, ("float32", "float64"), ("T",), _cube_sum,
        lambda grads, inputs, outputs: [3 * inputs[0] ** 2 * grads[0] + grads[1][:, None]], ("matrix",),
    ),
    Case(
        "struct, indices from data", pick, ("float32", "float64"), ("T", "T", "int64"), _pick, _pick_backward,
        ("any", "vector", "first"), ((-8, 8), (-8, 8), (0, 1)),
    ),
    Case(
        "struct, inputs not kept", squash, ("float32", "float64"), ("T", "T"), _squash,
        lambda grads, inputs, outputs: [grads[0] * (1 - outputs[0] ** 2)] * 2, ("any", "first"),
    ),
    Case(
        "class, seed 002", _ipowop, ("float64",), ("T",), lambda x: [x * x * x],
        lambda grads, inputs, outputs: [3 * grads[0] * inputs[0] ** 2],
    ),
    Case(
        "class, whole numbers", _made_gauge, ("float64",), ("T", "int64"), _gauge,
        lambda grads, inputs, outputs: [grads[0] * _factors(*inputs), None], ("any", "any"),
    ),
    *(
        Case(f"struct, throws {how or 'nothing'}", partial(failing, how), ("float32",), ("T",), partial(_failing, how))
        for how in ("", "runtime_error", "number", "long", "bound", "kind")
    ),
)  # fmt: skip
