"""DeepBench's training sizes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from deep500.operators.problem_set import ProblemSet, read_problems
from deep500.operators.problems import (
    AllReduceProblem,
    ConvolutionProblem,
    GemmProblem,
    Problem,
    RecurrentProblem,
)

__all__ = ["DeepBench"]

_KINDS: Mapping[str, type[Problem]] = {
    "gemm": GemmProblem,
    "convolution": ConvolutionProblem,
    "rnn": RecurrentProblem,
    "all_reduce": AllReduceProblem,
}


class DeepBench(ProblemSet):
    """Sizes of DeepBench's training set: products of matrices, convolutions, recurrent layers and sums over processes.

    They were collected from networks for speech, images, language and games. ``SOURCE.md`` beside the figures says
    where they come from.

    Source: S. Narang, G. Diamos, "DeepBench", https://github.com/baidu-research/DeepBench.
    """

    @property
    def operations(self) -> tuple[str, ...]:
        """``gemm``, ``convolution``, ``rnn`` and ``all_reduce``."""
        return tuple(_KINDS)

    def _problems(self, operation: str) -> tuple[Problem, ...]:
        return _read(operation)


@cache
def _read(operation: str) -> tuple[Problem, ...]:
    return read_problems(Path(__file__).with_name(f"{operation}.csv"), _KINDS[operation])
