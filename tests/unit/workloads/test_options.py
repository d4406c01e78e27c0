from __future__ import annotations

from typing import Any

import pytest

from deep500.core.errors import MeasurementError
from deep500.measure.workload import parse_workload
from deep500.workloads._options import Options, refuse_place


def options(values: str = "") -> Options:
    return Options(parse_workload(f"model:lenet{values}"))


@pytest.mark.parametrize(
    ("method", "written", "value"),
    [
        (lambda o: o.count("x", 5), "3", 3),
        (lambda o: o.positive("x", 5.0), "3", 3.0),
        (lambda o: o.positive("x", 5.0), "1e-3", 1e-3),
        (lambda o: o.flag("x", True), "False", False),
        (lambda o: o.text("x", "a"), "b", "b"),
        (lambda o: o.choice("x", "a", ("a", "b")), "b", "b"),
        (lambda o: o.shape("x", (1,)), "1x28x28", (1, 28, 28)),
        (lambda o: o.shape("x", (1,)), "1X2", (1, 2)),
        (lambda o: o.shape("x", (1,)), "(1,28,28)", (1, 28, 28)),
        (lambda o: o.shape("x", (1,)), "[3]", (3,)),
        (lambda o: o.shape("x", (1,)), "7", (7,)),
    ],
)
def test_option_that_is_given(method: Any, written: str, value: Any) -> None:
    given = options(f",x={written}")

    assert method(given) == value
    given.finish()
    assert method(options()) != value


def test_seed_is_zero_unless_given() -> None:
    assert options().seed() == 0
    assert options(",seed=7").seed() == 7
    assert options(f",seed={2**64 - 1}").seed() == 2**64 - 1


@pytest.mark.parametrize(
    ("method", "values", "accepted"),
    [
        (lambda o: o.count("x", 5), ["0", "-1", "1.5", "True", "a", "None", str(2**63)], "a whole number from 1"),
        (lambda o: o.positive("x", 5.0), ["0", "-1", "1e400", "True", "a", "9" * 400], "a finite number above 0"),
        (lambda o: o.flag("x", True), ["1", "0", "yes", "None"], "True or False"),
        (lambda o: o.text("x", "a"), ["''", "3", "None", "[1]"], "a name"),
        (lambda o: o.choice("x", "a", ("a", "b")), ["c", "1", "[1]", "{}"], "one of a, b"),
        (lambda o: o.shape("x", (1,)), ["0x3", "1x", "x", "1xa", "()", "(1,0)", "True", "1.5", "(1,'2')", "²"],
         "the shape of one sample"),
    ],
)  # fmt: skip
def test_option_that_is_not_accepted(method: Any, values: list[str], accepted: str) -> None:
    for value in values:
        with pytest.raises(MeasurementError, match=f"x was given as .* in .*; accepted is {accepted}"):
            method(options(f",x={value}"))


@pytest.mark.parametrize("value", ["-1", "1.5", "True", "a", str(2**64)])
def test_bad_seed_is_refused(value: str) -> None:
    with pytest.raises(
        MeasurementError, match=r"seed was given as .*; accepted is a whole number from 0 to 2\*\*64 - 1"
    ):
        options(f",seed={value}").seed()


def test_what_nobody_takes_is_refused_with_a_hint() -> None:
    given = options(",batchsize=3")
    given.count("batch_size", 1)
    given.seed()

    with pytest.raises(MeasurementError) as caught:
        given.finish()

    assert str(caught.value) == (
        "'model:lenet,batchsize=3' has the unknown option 'batchsize'. Did you mean 'batch_size'? "
        "Accepted: batch_size, seed."
    )


def test_rest_takes_certain_names_only() -> None:
    given = options(",a=1,b=2,seed=3")
    given.seed()

    assert given.rest(["a", "c", "seed"]) == {"a": 1}
    with pytest.raises(MeasurementError, match=r"unknown option 'b'.* Accepted: seed, a, c\."):
        given.finish()


def test_place_of_what_no_framework_runs_is_refused() -> None:
    refuse_place(parse_workload("dataset:digits"))

    with pytest.raises(MeasurementError, match="Leave out @pytorch:cpu"):
        refuse_place(parse_workload("dataset:digits@pytorch:cpu"))
