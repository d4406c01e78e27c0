from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from deep500.core.tensor_descriptor import tensordesc
from deep500.operators.validation.generate import FunctionCase, TemplateCase, generated_cases, smallest


def cases(**options: Any) -> list[Any]:
    arguments = {
        "cases": None, "shapes": None, "input_count": 1, "dtypes": ["float32"], "examples": 60, "seed": 0, **options
    }  # fmt: skip
    return list(generated_cases(**arguments))


def shapes(made: list[Any]) -> set[tuple[int, ...]]:
    return {case.inputs()[0].shape for case in made}


def test_shapes_of_all_ranks_with_sizes_of_one_and_none() -> None:
    found = shapes(cases())

    assert {len(shape) for shape in found} == {0, 1, 2, 3, 4}
    assert () in found
    assert any(0 in shape for shape in found)
    assert (1, 1, 1) in found


def test_templates_share_their_sizes() -> None:
    for case in cases(shapes=[("n", "c", 8), ("c",), tensordesc("int64", "n")]):
        x, w, labels = case.inputs()
        assert x.shape == (labels.shape[0], w.shape[0], 8)
        assert (x.dtype, w.dtype, labels.dtype) == (np.float32, np.float32, np.int64)


def test_arrays_lie_in_memory_in_different_ways() -> None:
    made = [case.inputs()[0] for case in cases(shapes=[("n", "c")])]
    large = [x for x in made if min(x.shape) > 1]

    assert any(x.flags.c_contiguous for x in large)
    assert any(x.flags.f_contiguous for x in large)
    assert any(not x.flags.forc for x in large)
    assert any(x.strides[0] < 0 for x in large)


def test_special_values_on_request() -> None:
    def specials(**options: Any) -> int:
        made = cases(shapes=[("n", "c")], dtypes=["float32", "bfloat16"], **options)
        return sum(int(np.sum(~np.isfinite(x))) for case in made for x in case.inputs())

    assert specials() == 0
    assert specials(special_values=True) > 0


def test_dtypes_come_in_turn() -> None:
    assert [case.dtype for case in cases(dtypes=["float32", np.float64], examples=4)] == ["float32", "float64"] * 2


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "float16"])
def test_the_code_makes_the_same_inputs(dtype: str) -> None:
    made = cases(shapes=[("n", "c"), tensordesc("int32", "c")], dtypes=[dtype], special_values=True, examples=30)
    for case in made:
        scope: dict[str, Any] = {}
        exec(case.code(), scope)
        for found, expected in zip(scope["inputs"], case.inputs(), strict=True):
            assert found.dtype == expected.dtype
            np.testing.assert_array_equal(found.astype(float), expected.astype(float))
            if expected.size > 1 and min(expected.shape) > 1:
                assert found.flags.c_contiguous == expected.flags.c_contiguous


def test_absent_inputs_can_be_written_down() -> None:
    case = FunctionCase(lambda rng: [rng.standard_normal(2), None], "bfloat16", (0, 1))
    scope: dict[str, Any] = {}
    exec(case.code(), scope)

    assert scope["inputs"][0].dtype == ml_dtypes.bfloat16
    assert scope["inputs"][1] is None


def test_the_same_seed_gives_the_same_inputs() -> None:
    one, same, other = (cases(seed=seed)[7].inputs()[0] for seed in (3, 3, 4))

    np.testing.assert_array_equal(one, same)
    assert one.shape != other.shape or (one != other).any()


def test_shrinking_finds_the_smallest() -> None:
    case = TemplateCase((("n", "c"),), {"n": 17, "c": 8}, layout="strided", values="special")

    small = smallest(case, lambda other: other.inputs()[0].shape[0] >= 3 and other.inputs()[0].shape[1] >= 2)

    assert isinstance(small, TemplateCase)
    assert small.sizes == {"n": 3, "c": 2}
    assert (small.layout, small.values) == ("contiguous", "ones")


def test_shrinking_keeps_what_is_needed() -> None:
    case = TemplateCase((("n",),), {"n": 5}, layout="reversed")

    assert smallest(case, lambda other: other.layout == "reversed").layout == "reversed"
    assert smallest(case, lambda other: False) == case
