from __future__ import annotations

import re

import pytest

from deep500.core.errors import FleetError
from deep500.fleet.compat.cell import Cell
from tests.unit.fleet.compat.support import cell


def test_the_id_says_what_it_is_and_follows_it_only() -> None:
    one = cell(cuda="12.8", compute_capability="9.0", ranks=2, recipe="/some/where/my recipe.py")
    assert re.fullmatch(r"fleetalpha-1\.0-python3\.11-cuda12\.8-cc9\.0-ranks2-my-recipe-[0-9a-f]{8}", one.cell_id)
    assert one.gpus == 2
    assert cell().gpus == 0
    assert cell(timeout_s=1.0, memory_mb=5, pip_options=("--pre",)).cell_id == cell().cell_id
    others = [cell(version="1.1"), cell(ranks=2), cell(requirements=("a",)), cell(adapter="x"), cell(recipe="x")]
    assert len({cell().cell_id, *(other.cell_id for other in others)}) == 6


def test_written_and_read() -> None:
    one = cell(requirements=("a==1", "b"), pip_options=("--pre",), memory_mb=100)
    assert Cell.from_dict(one.to_dict()) == one
    with pytest.raises(FleetError):
        Cell.from_dict({"framework": "a"})
    with pytest.raises(FleetError):
        Cell.from_dict({**one.to_dict(), "recipe": 3, "cell_id": "x"})


def test_the_limit_holds_both_parts() -> None:
    assert cell().limit_s > 65.0
