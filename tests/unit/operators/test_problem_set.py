from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from deep500.core.errors import InvalidInputError, MeasurementError, UnknownNameError
from deep500.measure.workload import WORKLOADS
from deep500.operators.problem_set import PROBLEM_SETS, ProblemSet, read_problems, spread_over_work
from deep500.operators.problems import GemmProblem, Problem, RecurrentProblem

#: Work that grows by a factor of 8, in another order.
PROBLEMS = [GemmProblem(side, side, side) for side in (8, 1, 64, 2, 32, 4, 16)]


class Small(ProblemSet):
    @property
    def operations(self) -> tuple[str, ...]:
        return ("gemm",)

    def _problems(self, operation: str) -> tuple[Problem, ...]:
        return tuple(PROBLEMS)


def test_problems_are_found_by_operator_and_number() -> None:
    assert Small().problems("gemm") == tuple(PROBLEMS)
    assert [Small().problem("gemm", number) for number in (1, 7)] == [PROBLEMS[0], PROBLEMS[6]]
    with pytest.raises(UnknownNameError, match=r"Small has no operator 'gem'\. Did you mean 'gemm'\? It has: gemm"):
        Small().problems("gem")
    for number in (8, 10**9):
        with pytest.raises(MeasurementError, match=rf"The size {number} of gemm was asked for; there are 1 to 7"):
            Small().problem("gemm", number)
    with pytest.raises(MeasurementError, match="size was given as 0"):
        Small().problem("gemm", 0)


@pytest.mark.parametrize(
    ("limit", "sides"),
    [
        (None, [8, 1, 64, 2, 32, 4, 16]),
        (7, [8, 1, 64, 2, 32, 4, 16]),
        (100, [8, 1, 64, 2, 32, 4, 16]),
        (1, [8]),
        (2, [1, 64]),
        (3, [8, 1, 64]),
        (4, [1, 64, 4, 16]),
    ],
)
def test_limit_spreads_over_the_work(limit: int | None, sides: list[int]) -> None:
    numbers = spread_over_work(PROBLEMS, limit)

    assert [PROBLEMS[number - 1].m for number in numbers] == sides


def test_every_limit_gives_so_many_different_ones() -> None:
    many = [GemmProblem(1 + (7 * index) % 50, 3, 5) for index in range(160)]

    for limit in range(1, 161):
        numbers = spread_over_work(many, limit)
        assert len(set(numbers)) == len(numbers) == limit
        assert numbers == sorted(numbers) == spread_over_work(many, limit)


@pytest.mark.parametrize("limit", [0, -1, 1.5, True])
def test_limit_that_is_none_is_refused(limit: Any) -> None:
    with pytest.raises(MeasurementError, match="limit was given as"):
        spread_over_work(PROBLEMS, limit)


def test_table_is_read(tmp_path: Path) -> None:
    path = tmp_path / "rnn.csv"
    path.write_text("hidden_size,batch_size,time_steps,cell\n5,2,3,lstm\n6,1,2,gru\n")

    assert read_problems(path, RecurrentProblem) == (
        RecurrentProblem(5, 2, 3, "lstm"),
        RecurrentProblem(6, 1, 2, "gru"),
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("m,n,k\n1,2,3\n1,0,3\n", "gemm.csv, line 3: n was given as 0"),
        ("m,n,k\n1,2\n", "gemm.csv, line 2"),
        ("m,n,k\n1,2,3,4\n", "gemm.csv, line 2"),
        ("m,n,depth\n1,2,3\n", "gemm.csv, line 2"),
        ("m,n,k\n1,2,-3\n", "gemm.csv, line 2: k was given as '-3'"),
    ],
)
def test_table_with_a_slip_is_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "gemm.csv").write_text(text)

    with pytest.raises(InvalidInputError) as caught:
        read_problems(tmp_path / "gemm.csv", GemmProblem)
    assert message in str(caught.value)


@pytest.mark.parametrize("name", PROBLEM_SETS.names())
def test_every_problem_set_can_be_used(name: str) -> None:
    problem_set = PROBLEM_SETS.get(name)()

    assert name in WORKLOADS  # a kind of workload of the same name
    assert problem_set.operations
    for operation in problem_set.operations:
        problems = problem_set.problems(operation)
        assert problems
        for problem in problems:
            hash(problem)
            assert problem.title.isprintable()
            assert problem.flops > 0
            assert problem.size_bytes("float32") > 0
