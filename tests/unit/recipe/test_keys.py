from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from deep500.core.errors import RecipeError
from deep500.recipe.keys import KEYS, argument_keys, base_key, check_value, known_keys


def test_only_what_takes_arguments_has_argument_keys() -> None:
    assert argument_keys("model") == ("model_args", "model_kwargs")
    assert argument_keys("epochs") == ()
    assert "epochs_args" not in known_keys()
    assert set(KEYS) < set(known_keys())


def test_base_key() -> None:
    assert [base_key(key) for key in ("model", "model_args", "train_sampler_kwargs")] == [
        "model",
        "model",
        "train_sampler",
    ]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *[("epochs", value) for value in ("3", 0, -1, True, 1.0, None, np.bool_(True))],
        *[("batch_size", value) for value in ("3", 0, -1, True, 2.5, None)],
        *[("seed", value) for value in ("0", -1, True, 1.5, 2**64)],
        *[("model", value) for value in (None, "", "  ", 3, b"x")],
        ("dataset", None),
        *[("executor", value) for value in (None, "", 3, np)],
        *[("optimizer", value) for value in (None, "", 3, len)],
        ("train_sampler", len),
        *[("events", value) for value in ("progress_bar", None, {})],
        *[
            (key, value)
            for key in ("steps", "samples", "evaluate_every_steps", "runs")
            for value in (0, True, 1.5, "1")
        ],
        *[("time_limit_s", value) for value in (0, -1.0, True, "60", float("inf"), float("nan"))],
        *[("precision", value) for value in ("float64", 16, None, ["float32"])],
        *[("deterministic", value) for value in (1, "yes", None)],
        *[("schedule", value) for value in ([], "cosine", {1: "cosine"}, None)],
        *[("input_pipeline", value) for value in (2, ["thread"], {1: 2})],
        *[("train_transformations", value) for value in ("flip", {"name": "flip"}, None)],
        *[("optimizer_args", value) for value in (0.1, "ab", None, {})],
        *[("optimizer_kwargs", value) for value in ((), [("a", 1)], None, {1: 2})],
    ],
)
def test_wrong_value_is_refused_in_one_line(key: str, value: Any) -> None:
    with pytest.raises(RecipeError, match=rf"^MUTABLE\['{key}'\] is .*; accepted is ") as caught:
        check_value("MUTABLE", key, value)

    assert "\n" not in str(caught.value)


def test_numpy_integer_becomes_an_int() -> None:
    assert type(check_value("FIXED", "epochs", np.int64(3))) is int


def test_forgotten_comma_of_a_tuple_is_hinted_at() -> None:
    with pytest.raises(RecipeError, match=r"\(value,\)"):
        check_value("MUTABLE", "optimizer_args", (0.1))
