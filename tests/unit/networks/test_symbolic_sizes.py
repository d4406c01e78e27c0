from __future__ import annotations

from typing import Any

import pytest

from deep500.core.errors import InvalidInputError, UnknownNameError
from deep500.networks.network import Network
from deep500.networks.symbolic_sizes import checked_sizes, symbolic_sizes
from tests.unit.networks.support import relu_model

NETWORK = Network.load(relu_model("n", "width", 3))


def test_names() -> None:
    assert symbolic_sizes(NETWORK) == ["n", "width"]
    assert symbolic_sizes(Network.load(relu_model(None, 3))) == []


def test_sizes_that_are_accepted() -> None:
    assert checked_sizes(NETWORK, None) == {}
    assert checked_sizes(NETWORK, {"width": 3}) == {"width": 3}
    assert checked_sizes(NETWORK, {"width": 0}, least=0) == {"width": 0}


@pytest.mark.parametrize("size", [0, -1, 1.0, True, "4", None, 2**63])
def test_sizes_that_are_not(size: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"size 'n' was given as .*whole numbers from 1"):
        checked_sizes(NETWORK, {"n": size})
    with pytest.raises(UnknownNameError, match=r"named 'widht'. Did you mean 'width'. Symbolic sizes: n, width"):
        checked_sizes(NETWORK, {"widht": size})
