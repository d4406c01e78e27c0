from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import tensorflow as tf

from deep500.core.errors import OperatorError
from deep500.frameworks.tensorflow._symbolic_sizes import infer_symbolic

#: From two sizes to one.
FORMULAS: dict[str, Callable[[Any, Any], Any]] = {
    "sum": lambda n, m: n + m + 1 + 0 * (1 + n),
    "difference": lambda n, m: (100 - n) - (m - 3),
    "product": lambda n, m: 2 * n * m * 3,
    "quotient": lambda n, m: n // 2 + 100 // (m + 1) + n // (m + 1),
    "rest": lambda n, m: n % 3 + 100 % (m + 1),
    "negative": lambda n, m: 9 + -n + m,
    "maximum": lambda n, m: max(n, m, 3),
    "minimum": lambda n, m: min(n, m, 3) + min([m, 2]),
    "window": lambda n, m: (n + 2 * 1 - 3) // 2 + 1 + max(0, m - 1),
    "choice": lambda n, m: n if n == m else (m if m != 2 else 7),
    "order": lambda n, m: 1 if n <= m and m >= 2 else (2 if not n else 3),
    "bounds": lambda n, m: 1 if 0 < n < 4 else 2,
    "loop": lambda n, m: sum(1 for limit in (1, 2, 3) if n > limit),
}


def infer_of(formula: Callable[[Any, Any], Any]) -> Callable[[Sequence[Any]], Any]:
    return lambda shapes: (((formula(*shapes[0]), 5),), ("float32",))


@pytest.mark.parametrize("name", list(FORMULAS))
def test_one_infer_serves_numbers_and_symbols(name: str) -> None:
    formula = FORMULAS[name]

    @tf.function(input_signature=[tf.TensorSpec([], tf.int64)] * 2)
    def run(n: Any, m: Any) -> Any:
        types = infer_symbolic("op", infer_of(formula), [(n, m)])
        assert types.dtypes == ("float32",)
        assert types.shapes[0][1] == 5
        return tf.cast(types.shapes[0][0], tf.int64), [check for check, _ in types.checks]

    for n in range(6):
        for m in range(6):
            size, checks = run(n, m)
            assert (int(size), checks) == (formula(n, m), [])


def test_numbers_stay_numbers() -> None:
    types = infer_symbolic("op", infer_of(FORMULAS["window"]), [(7, 2)])
    assert (types.shapes, types.checks) == (((5, 5),), ())
    assert type(types.shapes[0][0]) is int


def refusing(shapes: Sequence[Any]) -> Any:
    (n, m), (k,) = shapes
    if n != k:
        raise OperatorError("n is not k")
    if m > 3:
        if m == 5:
            raise OperatorError("m is 5")
        return ((n, 1),), ("float32",)
    return ((n, 2),), ("float32",)


def test_refused_sizes_become_checks() -> None:
    @tf.function(input_signature=[tf.TensorSpec([], tf.int64)] * 3)
    def run(n: Any, m: Any, k: Any) -> Any:
        types = infer_symbolic("op", refusing, [(n, m), (k,)])
        assert [reason for _, reason in types.checks] == ["n is not k", "m is 5"]
        return tf.stack([holds for holds, _ in types.checks]), tf.stack([tf.cast(s, tf.int64) for s in types.shapes[0]])

    for n, m, k, holds, shape in (
        (2, 1, 2, [True, True], [2, 2]),
        (2, 4, 2, [True, True], [2, 1]),
        (2, 5, 2, [True, False], None),
        (2, 1, 3, [False, True], None),
    ):
        checks, found = run(n, m, k)
        assert checks.numpy().tolist() == holds
        assert shape is None or found.numpy().tolist() == shape


def never(shapes: Sequence[Any]) -> Any:
    raise OperatorError(f"never, whether {shapes[0][0] > 1}")


def rank_of_size(shapes: Sequence[Any]) -> Any:
    return ((1,) if shapes[0][0] > 1 else (1, 1),), ("float32",)


def dtype_of_size(shapes: Sequence[Any]) -> Any:
    return ((1,),), ("float32" if shapes[0][0] > 1 else "float64",)


def endless(shapes: Sequence[Any]) -> Any:
    n = shapes[0][0]
    while n > 1:
        n = n // 2
    return ((n,),), ("float32",)


def tensor(shapes: Sequence[Any]) -> Any:
    return ((shapes[0][0].tensor,),), ("float32",)


@pytest.mark.parametrize(
    ("infer", "reason"),
    [
        (never, "never, whether"),
        (rank_of_size, r"other ranks or other dtypes depending on a size.*\[1\].*\[2\]"),
        (dtype_of_size, "float32.*float64"),
        (endless, "compares sizes that are known only when the graph runs more than 8 times"),
        (tensor, "infer returned the size"),
    ],
)
def test_what_cannot_be_followed_is_refused(infer: Callable[[Sequence[Any]], Any], reason: str) -> None:
    @tf.function(input_signature=[tf.TensorSpec([], tf.int64)], autograph=False)
    def run(n: Any) -> Any:
        with pytest.raises(OperatorError, match=reason):
            infer_symbolic("op", infer, [(n,)])
        return n

    run(1)


@pytest.mark.parametrize("operation", [lambda n: n / 2, lambda n: n + 1.5, lambda n: range(n), lambda n: {n: 1}])
def test_sizes_are_whole(operation: Callable[[Any], Any]) -> None:
    @tf.function(input_signature=[tf.TensorSpec([], tf.int64)], autograph=False)
    def run(n: Any) -> Any:
        with pytest.raises(TypeError):
            infer_symbolic("op", lambda shapes: operation(shapes[0][0]), [(n,)])
        return n

    run(1)
