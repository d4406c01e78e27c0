"""Files with operators, right ones and wrong ones."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from deep500.measure.sampling import benchmark
from deep500.measure.sampling.launch import run_launch
from deep500.measure.sampling.plan import SamplingPlan
from deep500.measure.workload import open_workload

#: An operator in C++ whose backward, or whatever BUG says, is wrong; compiled once for each.
SQUARE = """
#include <deep500/operator.h>

using deep500::View;

struct Square {
    static constexpr auto dtypes = deep500::dtypes<float, double>();
    static constexpr bool backward_reads_outputs = false;

    template <typename T>
    static void forward(View<const T> x, View<T> y) {
        for (int64_t i = 0; i < x.size(); ++i) y[i] = x[i] * x[i];
        BUG
    }
    template <typename T>
    static void backward(View<const T> y_gradient, View<const T> x, View<T> x_gradient) {
        for (int64_t i = 0; i < x.size(); ++i) x_gradient[i] = T(FACTOR) * x[i] * y_gradient[i];
    }
};
D500_OPERATOR(square_for_checks, Square)
"""

#: What each class of operators.py does.
OPERATORS = f'''
"""Operators, right and wrong."""

import os
import signal

import numpy as np

import deep500 as d5
from deep500.operators.library.exp import Exp  # no custom operator

SOURCE = """{SQUARE}"""


def square(bug="", factor="2"):
    return SOURCE.replace("BUG", bug).replace("FACTOR", factor)


class Good(d5.CustomPythonOp):
    def forward(self, x):
        return np.sin(x)

    def backward(self, grads, fwd_inputs, fwd_outputs):
        return grads[0] * np.cos(fwd_inputs[0])


class Native(d5.CppOp):
    name = "square_for_checks"
    source = square()


class WrongGradient(Native):
    name = "square_for_checks"
    source = square(factor="2.02")


class Throws(Native):
    name = "square_for_checks"
    source = square('throw std::runtime_error("the pump is broken");')


class WritesNaN(Native):
    name = "square_for_checks"
    source = square("y[1] = y[0] * std::numeric_limits<T>::quiet_NaN();")


class Crashes(d5.CustomPythonOp):
    """The first call of each process is its end."""

    def forward(self, x):
        os.kill(os.getpid(), signal.SIGSEGV)
        return x


class LacksSymbol(d5.CppOp):
    name = "another_name"
    source = square()


class DoesNotCompile(d5.CppOp):
    name = "square_for_checks"
    source = square("no_such_function(x);")


class NeedsPower(d5.CustomPythonOp):
    def __init__(self, power):
        super().__init__()
        self.power = power

    def forward(self, x):
        return x ** self.power

    def backward(self, grads, fwd_inputs, fwd_outputs):
        return grads[0] * self.power * fwd_inputs[0] ** (self.power - 1)
'''


def write_operators(folder: Path, *names: str) -> Path:
    """Write a file with some of the operators; with all of them where none are named."""
    path = folder / "operators.py"
    chosen = f"\nfor _name in [n for n in dir() if n[0].isupper() and n not in {(*names, 'SOURCE')!r}]:\n"
    rest = f"{chosen}    if _name not in ('Native', 'Exp'):\n        del globals()[_name]\n" if names else ""
    hide = "" if not names or "Native" in names else "_Native = Native\ndel Native\n"
    path.write_text(OPERATORS + rest + hide)
    return path


def measure_here(monkeypatch: Any) -> list[Sequence[str]]:
    """Let launches of measurements be in this process, and short; return the list of what they measure."""
    launched: list[Sequence[str]] = []
    quick = SamplingPlan(minimum_time_s=0.0, warm_up=1, time_limit_s=0.1, builds=1)

    def launch(specs: Any, plan: SamplingPlan, *, seed: int, number: int, environment: bool, tell: Any) -> Any:
        launched.append(specs)
        tell("sampling", 10, "a detail")
        openers = [functools.partial(open_workload, spec) for spec in specs]
        return run_launch(openers, quick, seed=seed, number=number, fresh=True, environment=environment)

    monkeypatch.setattr(benchmark, "launch_process", launch)
    return launched
