from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pytest

from deep500.networks.pure_functions import readings_of

CONSTANT = 0.5
HISTORY: list[Any] = []


def helper(x: Any) -> Any:
    return CONSTANT * x


def impure_helper(x: Any) -> Any:
    HISTORY.append(x)
    return x


class Owner:
    def __init__(self) -> None:
        self.rate = 0.1
        self.count = 0
        self.table = {"a": 1.0}
        self.array = np.zeros(2)

    @property
    def half(self) -> float:
        return self.rate / 2

    def factor(self, x: Any) -> Any:
        return self.rate * x

    def plain(self, g: Any, w: Any, name: str) -> Any:
        return w - self.rate * g

    def calls(self, g: Any, w: Any, name: str) -> Any:
        return helper(self.factor(g)) + math.sqrt(2.0) * abs(w) - self.half

    def comprehends(self, g: Any, w: Any, name: str) -> Any:
        return sum([self.rate * x for x in (g, w)])

    def branches(self, g: Any, w: Any, name: str) -> Any:
        return w if name.endswith("bias") else w - g

    def counts(self, g: Any, w: Any, name: str) -> Any:
        self.count += 1
        return w

    def reads_a_table(self, g: Any, w: Any, name: str) -> Any:
        return w - self.table["a"] * g

    def reads_an_array(self, g: Any, w: Any, name: str) -> Any:
        return w - self.array * g

    def writes_a_table(self, g: Any, w: Any, name: str) -> Any:
        self.table[name] = g
        return w

    def calls_another(self, g: Any, w: Any, name: str) -> Any:
        return impure_helper(w)

    def draws(self, g: Any, w: Any, name: str) -> Any:
        return w + random.random()

    def prints(self, g: Any, w: Any, name: str) -> Any:
        print(name)
        return w

    def sets(self, g: Any, w: Any, name: str) -> Any:
        setattr(self, name, g)
        return w

    def hides(self, g: Any, w: Any, name: str) -> Any:
        self.__dict__.update({name: g})
        return w

    def defaults(self, g: Any, w: Any, name: str, seen: list[Any] = []) -> Any:  # noqa: B006 - that is the case
        seen.append(name)
        return w

    def globally(self, g: Any, w: Any, name: str) -> Any:
        global CONSTANT
        CONSTANT = 1.0
        return w


@pytest.mark.parametrize("name", ["plain", "calls", "comprehends", "branches"])
def test_what_may_be_traced(name: str) -> None:
    assert readings_of(getattr(Owner(), name), ["math"]) is not None


@pytest.mark.parametrize(
    "name",
    [
        *("counts", "reads_a_table", "reads_an_array", "writes_a_table", "calls_another", "draws", "prints", "sets"),
        *("hides", "defaults", "globally"),
    ],
)
def test_what_must_be_called(name: str) -> None:
    assert readings_of(getattr(Owner(), name), ["math"]) is None


def test_what_is_read_is_noticed_when_it_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    owner = Owner()
    readings = readings_of(owner.calls, ["math"])
    assert readings is not None
    assert readings.hold()
    owner.rate = 0.2
    assert not readings.hold()
    owner.rate = 0.1
    assert readings.hold()
    monkeypatch.setattr("tests.unit.networks.test_pure_functions.CONSTANT", 0.7)
    assert not readings.hold()


def test_arguments_in_truth_may_change() -> None:
    owner = Owner()
    readings = readings_of(owner.plain, [], variable=["rate"])
    assert readings is not None
    owner.rate = 0.2
    assert readings.hold()


def test_values_around_a_closure() -> None:
    rate, kept = 0.1, [0.0]

    def follows() -> None:
        nonlocal rate
        rate = 0.3

    readings = readings_of(lambda g, w: w - rate * g, [])
    assert readings is not None
    follows()
    assert not readings.hold()
    assert readings_of(lambda g, w: w - kept[0] * g, []) is None


def test_what_is_no_function_of_python() -> None:
    class Callable:
        def __call__(self, g: Any) -> Any:
            return g

    assert readings_of(Callable(), []) is None
    assert readings_of(len, []) is None
