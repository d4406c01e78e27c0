from __future__ import annotations

import copy
import pickle

import pytest

from deep500.core import errors
from deep500.core.errors import Deep500Error, UnknownNameError, near_miss

CLASSES = [getattr(errors, name) for name in errors.__all__ if name.endswith("Error")]


@pytest.mark.parametrize("error", CLASSES)
def test_every_error_is_one_of_deep500(error: type[Deep500Error]) -> None:
    assert issubclass(error, Deep500Error)
    assert str(error("what was received")) == "what was received"
    assert type(pickle.loads(pickle.dumps(error("x")))) is error
    assert str(copy.copy(error("x"))) == "x"


@pytest.mark.parametrize(
    ("name", "base"),
    [
        ("InvalidNetworkError", ValueError),
        ("InvalidInputError", ValueError),
        ("OperatorError", ValueError),
        ("UnsupportedOperatorError", NotImplementedError),
        ("UnknownNameError", KeyError),
        ("PluginError", ImportError),
        ("MissingDependencyError", ImportError),
        ("DeviceError", RuntimeError),
        ("DatasetError", ValueError),
        ("TrainingError", RuntimeError),
        ("RecipeError", ValueError),
    ],
)
def test_errors_are_those_of_python_too(name: str, base: type[Exception]) -> None:
    assert issubclass(getattr(errors, name), base)


def test_unknown_name_is_not_quoted() -> None:
    assert str(UnknownNameError("There is no 'x'.")) == "There is no 'x'."
    assert str(UnknownNameError()) == ""


def test_near_miss() -> None:
    assert near_miss("lennet", ["lenet", "resnet"]) == " Did you mean 'lenet'?"
    assert near_miss("zzz", ["lenet", "resnet"]) == ""
    assert near_miss("lenet", []) == ""
