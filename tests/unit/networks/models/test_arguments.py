from __future__ import annotations

import contextlib
import inspect
import itertools
from typing import Any

import onnx
import pytest

from deep500.core.errors import Deep500Error, InvalidInputError
from deep500.networks.creation import MODELS, create_model
from deep500.networks.models._arguments import (
    check_divides,
    check_flag,
    check_image,
    check_rate,
    check_sizes,
    check_text,
)

# Of each model what makes it small.
SMALL: dict[str, dict[str, Any]] = {
    "alexnet": {"width": 1, "hidden": 2},
    "vgg": {"width": 1, "hidden": 2, "depth": 11, "shape": (1, 32, 32)},
    "vgg11": {"width": 1, "hidden": 2, "shape": (1, 32, 32)},
    "imagenet_resnet": {"width": 1, "depth": 18},
    "resnet18": {"width": 1},
    "wide_resnet": {"depth": 10, "factor": 1},
    "mobilenet_v2": {"multiplier": 0.1},
    "unet": {"depth": 1, "width": 1},
    "lstm_language_model": {"classes": 3, "embedding": 2, "hidden": 2},
    "resnet_lstm": {"width": 1, "hidden": 2},
    "transformer_encoder": {"vocabulary": 3, "features": 4, "heads": 2, "layers": 1, "hidden": 2, "context": 4},
    "gpt": {"classes": 3, "features": 4, "heads": 2, "layers": 1, "hidden": 2, "context": 4},
    "dcgan_generator": {"image_size": 8, "width": 1},
    "dcgan_discriminator": {"shape": (1, 8, 8), "width": 1},
    "dlrm": {"tables": (2,), "features": 2, "bottom": (), "top": ()},
}
ODD = [None, 0, -1, True, 1.5, float("nan"), "", "ab", (), [0], {}, object()]


@pytest.mark.parametrize("name", SMALL)
def test_no_argument_of_a_model_breaks_it(name: str) -> None:
    own = [p for p in inspect.signature(MODELS.get(name)).parameters if p not in ("classes", "shape")]
    assert own
    for argument, odd in itertools.product(own, ODD):
        with contextlib.suppress(Deep500Error):
            network = create_model(name, **{**SMALL[name], argument: odd})
            onnx.checker.check_model(network.to_proto(), full_check=True)


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("shape", [(1,), (2, 2), (3, 5, 7), (1, 2, 3, 4), (1, 1, 1, 1, 1), ("t",), ("t", 1, 8, 8)])
def test_no_shape_breaks_a_model(name: str, shape: Any) -> None:
    with contextlib.suppress(Deep500Error):
        network = create_model(name, **{**SMALL[name], "shape": shape})
        onnx.checker.check_model(network.to_proto(), full_check=True)


def test_images() -> None:
    assert check_image("m", (3, 8, 9), least=8) == (3, 8, 9)
    with pytest.raises(InvalidInputError, match=r"m needs samples of shape \(C, H, W\); received \(3, 8\)"):
        check_image("m", (3, 8))
    with pytest.raises(InvalidInputError, match=r"Of a 8x7 image nothing is left .* Use images of 8x8 pixels or more"):
        check_image("m", (3, 8, 7), least=8)


def test_texts() -> None:
    assert check_text("m", (5,), 5) == 5
    assert check_text("m", ("length",), 5) == "length"
    with pytest.raises(InvalidInputError, match="Texts of 6 tokens do not fit into context=5"):
        check_text("m", (6,), 5)
    with pytest.raises(InvalidInputError, match=r"samples of shape \(sequence,\)"):
        check_text("m", (6, 2))


def test_sizes() -> None:
    assert check_sizes("s", 4, "(1,)") == (4,)
    assert check_sizes("s", [4, 5], "(1,)") == (4, 5)
    assert check_sizes("s", (), "(1,)") == ()
    for wrong in ((0,), (1.0,), (True,), True, False, "12", None, {1: 2}):
        with pytest.raises(InvalidInputError, match="s was given as"):
            check_sizes("s", wrong, "(1,)")
    with pytest.raises(InvalidInputError, match="s was given as"):
        check_sizes("s", (), "(1,)", least=1)


def test_flags() -> None:
    assert check_flag("f", True) is True
    assert check_flag("f", False) is False
    for wrong in (0, 1, None, "yes"):
        with pytest.raises(InvalidInputError, match=r"f was given as .* accepted are True and False"):
            check_flag("f", wrong)


def test_rates() -> None:
    assert check_rate("r", 0) == 0
    assert check_rate("r", 0.5) == 0.5
    for wrong in (1, 1.0, -0.1, True, False, None, "0.1", float("nan"), float("inf")):
        with pytest.raises(InvalidInputError, match="r was given as"):
            check_rate("r", wrong)


def test_divisors() -> None:
    assert check_divides("heads", 3, "features", 12) == 3
    with pytest.raises(InvalidInputError, match="heads=5 does not divide features=12"):
        check_divides("heads", 5, "features", 12)
    with pytest.raises(InvalidInputError, match="heads was given as 0"):
        check_divides("heads", 0, "features", 12)
