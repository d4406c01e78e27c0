from __future__ import annotations

import numpy as np
import pytest

from deep500.core.errors import InvalidInputError
from deep500.frameworks import FRAMEWORKS
from deep500.networks.network import Network
from deep500.networks.profiling.runs import NetworkRun, nothing_network
from tests.unit.networks.support import relu_model

MAKE = FRAMEWORKS.get("reference").from_model


def test_run_is_one_inference() -> None:
    executor = MAKE(Network.load(relu_model(2)))
    run = NetworkRun("it", executor, {"x": np.array([-1, 1], np.float32)}, None)
    run.run()

    assert executor.network.fetch_tensors(["y"])[0].tolist() == [0.0, 1.0]
    assert run.identity == {"problem": "profile", "of": "it"}
    assert run.factors == {"framework": "reference", "device": "cpu"}
    with pytest.raises(InvalidInputError):
        NetworkRun("it", executor, {"x": np.zeros(3, np.float32)}, None)


def test_nothing_hands_on_a_number() -> None:
    assert MAKE(nothing_network(23)).inference({"x": np.float32(3)})["y"] == 3
