from __future__ import annotations

from typing import Any

import pytest

from deep500.core.errors import InvalidInputError
from deep500.core.tensor_descriptor import tensordesc
from deep500.operators.problems import (
    AllReduceProblem,
    ConvolutionProblem,
    GemmProblem,
    Problem,
    RecurrentProblem,
)

CONVOLUTION = ConvolutionProblem(
    width=9,
    height=6,
    channels=2,
    batch_size=3,
    filters=4,
    filter_width=5,
    filter_height=3,
    pad_width=1,
    pad_height=0,
    stride_width=2,
    stride_height=1,
)


def test_matrix_product() -> None:
    plain, transposed = GemmProblem(2, 3, 5), GemmProblem(2, 3, 5, True, True)

    assert plain.inputs("float64") == {"A": tensordesc("float64", 2, 5), "B": tensordesc("float64", 5, 3)}
    assert transposed.inputs("float64") == {"A": tensordesc("float64", 5, 2), "B": tensordesc("float64", 3, 5)}
    assert plain.output("float64") == transposed.output("float64") == tensordesc("float64", 2, 3)
    assert plain.flops == 2 * 2 * 3 * 5
    assert plain.size_bytes("float32") == 4 * (10 + 15 + 6)
    assert plain.sizes == {"m": 2, "n": 3, "k": 5, "a_transposed": False, "b_transposed": False}
    titles = [GemmProblem(2, 3, 5, a, b).title for a in (False, True) for b in (False, True)]
    assert titles == ["2x3x5", "2x3x5 B'", "2x3x5 A'", "2x3x5 A' B'"]


def test_convolution() -> None:
    assert CONVOLUTION.output_size == (4, 4)
    assert CONVOLUTION.inputs("float32") == {
        "X": tensordesc("float32", 3, 2, 6, 9),
        "W": tensordesc("float32", 4, 2, 3, 5),
    }
    assert CONVOLUTION.output("float32") == tensordesc("float32", 3, 4, 4, 4)
    assert CONVOLUTION.flops == 2 * (3 * 4 * 4 * 4) * (2 * 3 * 5)
    assert CONVOLUTION.title == "3x2x6x9 * 4x3x5 /1x2 +0x1"
    assert ConvolutionProblem(8, 8, 1, 1, 1, 3, 3).title == "1x1x8x8 * 1x3x3"
    assert ConvolutionProblem(8, 8, 1, 1, 1, 3, 3, 1, 1, 2, 2).title == "1x1x8x8 * 1x3x3 /2 +1"


@pytest.mark.parametrize(("cell", "gates"), [("vanilla", 1), ("lstm", 4), ("gru", 3)])
def test_recurrent_layer(cell: str, gates: int) -> None:
    problem = RecurrentProblem(hidden_size=5, batch_size=2, time_steps=3, cell=cell)

    assert problem.inputs("float32") == {
        "X": tensordesc("float32", 3, 2, 5),
        "W": tensordesc("float32", gates * 5, 5),
        "R": tensordesc("float32", gates * 5, 5),
        "B": tensordesc("float32", 2, gates * 5),
    }
    assert problem.output("float32") == tensordesc("float32", 3, 2, 5)
    assert problem.flops == 2 * (2 * 3) * (gates * 5) * (5 + 5)
    assert [problem.fan_in(name) for name in "XWRB"] == [1, 5, 5, 5]
    assert problem.title == f"{cell} 3x2x5"


def test_all_reduce_takes_several_processes() -> None:
    assert AllReduceProblem(10).is_distributed
    assert not any(problem.is_distributed for problem in (GemmProblem(1, 1, 1), CONVOLUTION))
    assert AllReduceProblem(10).size_bytes("float32") == 80
    assert AllReduceProblem(10).title == "10"


def test_equal_sizes_are_one_problem() -> None:
    assert GemmProblem(2, 3, 5, 1, 0) == GemmProblem(2, 3, 5, True, False)  # type: ignore[arg-type]
    assert len({GemmProblem(2, 3, 5), GemmProblem(2, 3, 5), GemmProblem(2, 3, 6)}) == 2


@pytest.mark.parametrize(
    ("kind", "sizes", "message"),
    [
        (GemmProblem, (0, 3, 5), "m was given as 0; accepted are whole numbers from 1"),
        (GemmProblem, (2, 3, "5"), "k was given as '5'"),
        (GemmProblem, (2, 3, 5, 2), "a_transposed was given as 2; accepted are True and False"),
        (ConvolutionProblem, (4, 4, 1, 1, 1, 3, 3, -1), "pad_width was given as -1; accepted are whole numbers from 0"),
        (ConvolutionProblem, (4, 2, 1, 1, 1, 3, 3), "A filter of 3x3 does not fit into images of 2x4"),
        (RecurrentProblem, (5, 2, 3, "elman"), "cell was given as 'elman'; accepted are vanilla, lstm, gru"),
        (AllReduceProblem, (2.5,), "elements was given as 2.5"),
    ],
)
def test_what_is_no_problem_is_refused(kind: type[Problem], sizes: tuple[Any, ...], message: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        kind(*sizes)
    assert message in str(caught.value)
