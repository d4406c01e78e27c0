from __future__ import annotations

import numpy as np
import pytest

from deep500.core.tensor_descriptor import TensorDescriptor
from deep500.networks.network import Network
from tests.unit.networks.support import evaluate, relu_model


@pytest.mark.parametrize("shape", [(), ("N",), ("N", 3), (2, "M", 1, 3)])
def test_any_shape(shape: tuple[int | str, ...]) -> None:
    network = Network.load(relu_model(*shape))
    network.append_loss("MeanSquaredError")
    sizes = [{"N": 4, "M": 5}.get(str(d), d) for d in shape]
    x, label = (np.random.default_rng(i).random(sizes).astype(np.float32) for i in (0, 1))

    assert network.inputs["label"] == TensorDescriptor("float32", shape)
    loss = evaluate(network, x=x, label=label)["loss"]

    assert loss.shape == ()
    np.testing.assert_allclose(loss, np.mean((x.astype(np.float64) - label) ** 2), rtol=1e-5)
