from __future__ import annotations

from itertools import combinations, pairwise
from typing import Any

import numpy as np
import pytest

from deep500.core.errors import InvalidInputError
from deep500.core.tensor_descriptor import TensorDescriptor
from deep500.networks.creation import create_model
from tests.unit.networks.support import evaluate

# Categories of the Criteo Kaggle data.
CRITEO = (
    *(1460, 583, 10131227, 2202608, 305, 24, 12517, 633, 3, 93145, 5683, 8351593, 3194, 27, 14992, 5461306, 10, 5652),
    *(2173, 4, 7046547, 18, 15, 286181, 105, 142572),
)


def test_sizes_are_those_of_the_published_configuration() -> None:
    network = create_model("dlrm", classes=1, tables=CRITEO)
    # 13-512-256-64-16 below, 367-512-256-1 above; 367 are 16 and the pairs of 27.
    layers = [13, 512, 256, 64, 16], [16 + 27 * 26 // 2, 512, 256, 1]
    dense = sum(a * b + b for sizes in layers for a, b in pairwise(sizes))

    assert layers[1][0] == 367
    assert network.parameter_count == 16 * sum(CRITEO) + dense
    assert network.parameter_count == pytest.approx(540e6, rel=0.002)


def test_inputs() -> None:
    network = create_model("dlrm", 3, dtype="float64", tables=(4, 5))

    assert network.inputs == {
        "input": TensorDescriptor("float64", (3, 13)),
        "categories": TensorDescriptor("int64", (3, 2)),
    }
    assert network.outputs["output"].shape == (3, 2)


def test_scores_are_those_of_the_formula() -> None:
    network = create_model(
        "dlrm", classes=1, shape=(3,), tables=(4, 2, 5), features=4, bottom=(6,), top=(5,), dtype="float64"
    )
    names = list(network.parameters)
    w = dict(zip(names, network.fetch_tensors(names)))
    stream = np.random.default_rng(0)
    dense, categories = stream.standard_normal((7, 3)), stream.integers(0, (4, 2, 5), (7, 3))

    def layer(name: str, x: Any) -> Any:
        return x @ w[f"{name}.weight"].T + w[f"{name}.bias"]

    x = np.maximum(layer("bottom.layers.1", np.maximum(layer("bottom.layers.0", dense), 0)), 0)
    vectors = [x, *(w[f"tables.{i}.weight"][categories[:, i]] for i in range(3))]
    pairs = sorted((j, i) for i, j in combinations(range(4), 2))
    products = np.stack([(vectors[i] * vectors[j]).sum(axis=1) for i, j in pairs], axis=1)
    hidden = np.maximum(layer("top.layers.0", np.concatenate([x, products], axis=1)), 0)

    output = evaluate(network, input=dense, categories=categories)["output"]
    np.testing.assert_allclose(output, layer("classifier", hidden), rtol=1e-12)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"shape": (3, 4)}, r"needs samples of shape \(D,\)"),
        ({"tables": ()}, "tables was given as"),
        ({"tables": (3, 0)}, "tables was given as"),
        ({"bottom": (2.0,)}, "bottom was given as"),
        ({"features": 0}, "features was given as 0"),
    ],
)
def test_other_arguments_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        create_model("dlrm", **arguments)
