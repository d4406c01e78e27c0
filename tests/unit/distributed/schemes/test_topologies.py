"""Topologies: symmetric, connected, doubly stochastic."""

from __future__ import annotations

import numpy as np
import pytest

from deep500.core.errors import TrainingError
from deep500.distributed.schemes._topologies import TOPOLOGIES, metropolis_weights, neighbours
from deep500.distributed.schemes.dpsgd import DPSGD


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16])
@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_weights_form_a_symmetric_doubly_stochastic_matrix_that_mixes(topology: str, size: int) -> None:
    matrix = np.zeros((size, size))
    for rank in range(size):
        for other, weight in metropolis_weights(topology, rank, size).items():
            matrix[rank, other] = weight
    assert (matrix == matrix.T).all()
    assert (matrix >= 0).all()
    np.testing.assert_allclose(matrix.sum(axis=0), 1, rtol=0, atol=1e-15)
    assert (np.diag(matrix) > 0).all()
    second = np.sort(np.abs(np.linalg.eigvalsh(matrix)))[-2] if size > 1 else 0
    assert second < 1 - 1e-3, "two groups of ranks never meet"


def test_neighbours_are_where_the_topology_says() -> None:
    assert neighbours("ring", 0, 5) == {1, 4}
    assert neighbours("torus", 0, 6) == {1, 2, 3}
    assert neighbours("torus", 5, 12) == {1, 9, 4, 6}
    assert neighbours("exponential", 0, 8) == {1, 2, 4, 6, 7}
    assert neighbours("torus", 2, 7) == {1, 3}


def test_an_unknown_topology_is_refused() -> None:
    with pytest.raises(TrainingError, match=r"topology was given as 'rings'\. Did you mean 'ring'\?"):
        DPSGD("rings")
    with pytest.raises(TrainingError, match=r"topology was given as \['ring'\]\. Accepted are: exponential"):
        DPSGD(["ring"])  # type: ignore[arg-type]
