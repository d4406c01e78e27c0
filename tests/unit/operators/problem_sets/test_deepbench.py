from __future__ import annotations

import re
from pathlib import Path

import pytest

from deep500.operators.problem_sets import deepbench
from deep500.operators.problem_sets.deepbench import DeepBench
from deep500.operators.problems import AllReduceProblem, ConvolutionProblem, GemmProblem, RecurrentProblem

FOLDER = Path(deepbench.__file__).parent

#: Of each operator: how many sizes there are, and some of them by their number, the first and the last among them.
KNOWN = {
    "gemm": (
        160,
        {
            1: GemmProblem(1760, 16, 1760),
            45: GemmProblem(5124, 9124, 1760),
            79: GemmProblem(512, 8, 500000),
            92: GemmProblem(8448, 24000, 2816),
            160: GemmProblem(1024, 32, 512, False, True),
        },
    ),
    "convolution": (
        94,
        {
            1: ConvolutionProblem(700, 161, 1, 4, 32, 20, 5, 0, 0, 2, 2),
            30: ConvolutionProblem(224, 224, 3, 16, 64, 7, 7, 3, 3, 2, 2),
            59: ConvolutionProblem(175, 40, 128, 16, 256, 5, 5, 1, 1, 2, 2),
            94: ConvolutionProblem(7, 7, 2048, 16, 512, 1, 1, 0, 0, 1, 1),
        },
    ),
    "rnn": (
        53,
        {
            1: RecurrentProblem(1760, 16, 50, "vanilla"),
            32: RecurrentProblem(256, 16, 150, "lstm"),
            53: RecurrentProblem(1024, 64, 1500, "gru"),
        },
    ),
    "all_reduce": (7, {1: AllReduceProblem(100000), 5: AllReduceProblem(16777217), 7: AllReduceProblem(64500000)}),
}


@pytest.mark.parametrize("operation", KNOWN)
def test_sizes_are_those_of_the_training_set(operation: str) -> None:
    count, rows = KNOWN[operation]
    problems = DeepBench().problems(operation)

    assert len(problems) == count
    assert {number: problems[number - 1] for number in rows} == rows
    assert all(DeepBench().problem(operation, number) == problem for number, problem in rows.items())


def test_there_are_no_other_operators() -> None:
    assert DeepBench().operations == tuple(KNOWN)


#: The columns of the source's lists, added up.
SUMS = {
    "gemm": [488664, 2114952, 4331552, 73, 10],
    "convolution": [9852, 4329, 33602, 1208, 35968, 306, 226, 52, 52, 126, 126],
}


@pytest.mark.parametrize("operation", SUMS)
def test_no_digit_is_lost(operation: str) -> None:
    problems = DeepBench().problems(operation)

    assert [sum(int(problem.sizes[name]) for problem in problems) for name in problems[0].sizes] == SUMS[operation]


def test_source_is_named_with_commits_and_counts() -> None:
    text = (FOLDER / "SOURCE.md").read_text()

    assert "github.com/baidu-research/DeepBench" in text
    assert "Apache-2.0" in text
    for operation, (count, _) in KNOWN.items():
        (line,) = [line for line in text.splitlines() if f"`{operation}.csv`" in line]
        assert re.search(r"`[0-9a-f]{40}`", line)
        assert line.rstrip(" |").endswith(f" {count}")


def test_tables_have_no_comments_and_end_with_a_line() -> None:
    for operation in KNOWN:
        text = (FOLDER / f"{operation}.csv").read_text()
        assert "#" not in text
        assert text.endswith("\n")
        assert not text.endswith("\n\n")
        assert len({line.count(",") for line in text.splitlines()}) == 1
