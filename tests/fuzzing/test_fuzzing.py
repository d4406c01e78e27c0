from __future__ import annotations

import pytest

from deep500.frameworks import installed_frameworks
from tests.fuzzing.job import FINDINGS, run_job
from tests.fuzzing.mutations import mutated
from tests.fuzzing.seeds import load_seeds


def findings(count: int, frameworks: list[str], *, exports: bool) -> list[str]:
    found = run_job(range(count), frameworks, exports=exports)
    return [str(one) for one in found if one.outcome in FINDINGS]


def test_damage_can_be_made_again() -> None:
    content = load_seeds(exports=False)["lenet"]

    assert [mutated(content, seed) for seed in range(30)] == [mutated(content, seed) for seed in range(30)]
    assert len({mutated(content, seed)[0] for seed in range(30)}) > 25


def test_damaged_files_are_refused_or_run() -> None:
    assert findings(150, [], exports=False) == []


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_many_damaged_files_are_refused_or_run() -> None:
    others = [name for name in ("pytorch", "onnxruntime") if name in installed_frameworks()]

    assert findings(5000, others, exports=True) == []
