from __future__ import annotations

import enum
import functools
import json
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from deep500.core.device import GPUDevice
from deep500.networks.creation import create_model
from deep500.recipe.describe import describe, hash_description
from deep500.training.samplers.shuffle import ShuffleSampler
from tests.unit.recipe.support import run_python


class Colour(enum.Enum):
    RED = 1


class Plain:
    def __init__(self, value: Any) -> None:
        self.value = value


class Slotted:
    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


@dataclass(frozen=True)
class Frozen:
    value: int


def named() -> None:
    pass


def closing(value: float) -> Callable[[float], float]:
    return lambda gradient: gradient * value


def test_plain_values_stay_as_they_are() -> None:
    value = {"a": 1, "b": [1.5, None, True, "x"], "c": {"d": 0}}

    assert describe(value) == value


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ((1, 2), [1, 2]),
        (float("nan"), {"$float": "nan"}),
        (np.float32(0.5), 0.5),
        (np.int64(3), 3),
        (Colour.RED, {"$enum": f"{__name__}:Colour.RED"}),
        (GPUDevice(1), {"$object": "deep500.core.device:GPUDevice", "attributes": {"index": 1}}),
        (ShuffleSampler, {"$class": "deep500.training.samplers.shuffle:ShuffleSampler"}),
        (named, {"$function": f"{__name__}:named"}),
        (len, {"$function": "builtins:len"}),
        (Plain([1]), {"$object": f"{__name__}:Plain", "attributes": {"value": [1]}}),
        (Slotted(2), {"$object": f"{__name__}:Slotted", "attributes": {"value": 2}}),
        (Frozen(3), {"$object": f"{__name__}:Frozen", "attributes": {"value": 3}}),
        (Path("a/b"), {"$path": "a/b"}),
        (json, {"$module": "json"}),
        (threading.Lock(), {"$object": "_thread:lock"}),
        ({1: "a"}, {"$mapping": [[1, "a"]]}),
        ({"$class": 1}, {"$mapping": [["$class", 1]]}),
        (
            functools.partial(named, 1, a=2),
            {"$partial": {"$function": f"{__name__}:named"}, "args": [1], "kwargs": {"a": 2}},
        ),
    ],
    ids=lambda value: type(value).__name__,
)
def test_description(value: Any, expected: Any) -> None:
    assert describe(value) == expected


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, 1.0),
        (1, True),
        (1, "1"),
        (Plain(1), Plain(2)),
        (Plain(1), Slotted(1)),
        (np.zeros(3), np.zeros(3, np.float32)),
        (np.zeros(4), np.zeros((2, 2))),
        (np.zeros(3), np.array([0, 0, 1.0])),
        (b"a", b"b"),
        ({1, 2}, {1, 3}),
        (date(2020, 1, 1), date(2020, 1, 2)),
        (range(3), range(4)),
        (closing(0.1), closing(0.2)),
        (lambda g: g + 1, lambda g: g + 2),
        (lambda g, p=1: g, lambda g, p=2: g),
        (create_model("mlp", seed=0, shape=(1, 2, 2)), create_model("mlp", seed=1, shape=(1, 2, 2))),
    ],
    ids=lambda value: type(value).__name__,
)
def test_different_values_have_different_hashes(one: Any, other: Any) -> None:
    assert hash_description(describe(one)) == hash_description(describe(one))
    assert hash_description(describe(one)) != hash_description(describe(other))


def test_lambda_is_described_by_its_source() -> None:
    rate = 0.25

    described = describe(lambda gradient, parameter: gradient + rate * parameter)

    assert described["source"] == "lambda gradient, parameter: gradient + rate * parameter"
    assert described["closure"] == {"rate": 0.25}


def test_order_of_keys_and_sets_does_not_matter() -> None:
    one = {"a": 1, "b": {"x", "y", "z"}}
    other = {"b": {"z", "y", "x"}, "a": 1}

    assert hash_description(describe(one)) == hash_description(describe(other))


def test_objects_that_hold_themselves_end() -> None:
    value = Plain(None)
    value.value = [value]

    assert describe(value)["attributes"]["value"] == [{"$cycle": 2}]


SCRIPT = """
import numpy as np
from deep500.recipe.describe import describe, hash_description
DECAY = 1e-4
class Own:
    def __init__(self):
        self.words = {"one", "two", "three"}
        self.lock = __import__("threading").Lock()
print(hash_description(describe({
    "set": {"a", "b", "c"}, "own": Own(), "class": Own, "lambda": lambda g, p: g + DECAY * p, "array": np.arange(5),
    "mapping": {("a", 1): {"x", "y"}},
})))
"""


def test_description_is_equal_in_every_process(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)

    hashes = {run_python(str(script), cwd=tmp_path, PYTHONHASHSEED=seed).stdout for seed in ("1", "2")}

    assert len(hashes) == 1
    assert len(hashes.pop().strip()) == 64


def test_constant_that_a_lambda_reads_counts(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    before = run_python(str(script), cwd=tmp_path).stdout
    script.write_text(SCRIPT.replace("1e-4", "1e-3"))

    assert run_python(str(script), cwd=tmp_path).stdout not in ("", before)


def test_whole_numbers_of_any_length_are_described() -> None:
    assert describe(10**1000) == 10**1000
    assert describe(10**5000) == {"$int": hex(10**5000)}
    assert hash_description(describe(10**5000)) != hash_description(describe(10**5000 + 1))
