from __future__ import annotations

import enum
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deep500.core.errors import InvalidInputError
from deep500.core.random import check_seed, random_stream

# What NumPy 2 drew when this was written. A failure means that seeds no longer reproduce published runs.
GOLDEN = [
    ((0, "parameter", "conv1.weight"), "random", [0.4205043371268148, 0.7230684618144284, 0.3321460983991792]),
    ((2**64 - 1, "sampler", "train", 3), "bits", [7331498665832117375, 2799468271898970027, 3304896608923220357]),
    ((0,), "standard_normal", [-1.10705065235315, -1.188926819480666]),
    ((7, "é"), "permutation", [5, 6, 0, 4, 7, 1, 3, 2]),
]

names = st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=5) | st.integers(-20, 20), max_size=3)


def first(*arguments: Any) -> int:
    return int(random_stream(*arguments).integers(0, 2**63))


@pytest.mark.parametrize(("arguments", "kind", "expected"), GOLDEN)
def test_golden_values(arguments: tuple[Any, ...], kind: str, expected: list[float]) -> None:
    stream = random_stream(*arguments)
    draws = {
        "random": lambda: stream.random(3),
        "bits": lambda: stream.integers(0, 2**63, 3),
        "standard_normal": lambda: stream.standard_normal(2),
        "permutation": lambda: stream.permutation(8),
    }

    assert draws[kind]().tolist() == expected


def test_generator_is_philox() -> None:
    assert isinstance(random_stream(0).bit_generator, np.random.Philox)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("ab", "c"), ("a", "bc")),
        ((1,), ("1",)),
        (("a",), ("a", "")),
        ((), ("",)),
        ((12, 3), (1, 23)),
        (("int1:5",), (5,)),
        ((-1,), (1,)),
        (("a", "b"), ("b", "a")),
    ],
)
def test_names_that_read_alike_give_other_streams(one: tuple[Any, ...], other: tuple[Any, ...]) -> None:
    assert first(0, *one) != first(0, *other)


@given(names, names)
def test_streams_are_equal_exactly_for_equal_names(one: list[Any], other: list[Any]) -> None:
    assert (first(3, *one) == first(3, *other)) == (one == other)


@given(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1))
def test_streams_differ_by_seed(one: int, other: int) -> None:
    assert (first(one, "a") == first(other, "a")) == (one == other)


def test_streams_are_independent() -> None:
    draws = np.stack([random_stream(0, "parameter", f"layer{i}").standard_normal(4000) for i in range(8)])
    correlation = np.corrcoef(draws) - np.eye(8)

    assert np.abs(correlation).max() < 5 / np.sqrt(4000)  # five standard deviations


def test_numpy_integers_and_text_enumerations_name_the_streams_of_their_values() -> None:
    class Split(str, enum.Enum):
        TRAIN = "train"

    assert first(np.uint64(5), np.int32(3), np.str_("x")) == first(5, 3, "x")
    assert first(0, Split.TRAIN) == first(0, "train")


@pytest.mark.parametrize("name", [None, 1.0, True, b"a", ("a",)])
def test_other_names_are_refused(name: Any) -> None:
    with pytest.raises(InvalidInputError, match="cannot name a random stream"):
        random_stream(0, name)


@pytest.mark.parametrize("seed", [-1, 2**64, 1.0, "1", None, True, np.bool_(True), np.float64(1)])
def test_other_seeds_are_refused(seed: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"Accepted are whole numbers from 0 to 2\*\*64 - 1"):
        random_stream(seed)


@pytest.mark.parametrize("seed", [0, 2**64 - 1, np.uint8(200), np.int64(3)])
def test_checked_seed_is_an_int(seed: Any) -> None:
    assert check_seed(seed) == seed
    assert type(check_seed(seed)) is int
