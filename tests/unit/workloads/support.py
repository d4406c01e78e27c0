"""What the tests of workloads share."""

from __future__ import annotations

import json
from typing import Any

import pytest

from deep500.measure.workload import Workload, open_workload


def opened(text: str) -> Any:
    """Open a workload, run it once, and return it."""
    workload = open_workload(text)
    workload.run()
    workload.synchronize()
    return workload


def plain(workload: Workload) -> dict[str, Any]:
    """Return all that a workload says of itself, through JSON and back."""
    content = {
        "identity": dict(workload.identity),
        "factors": dict(workload.factors),
        "data_hash": workload.data_hash,
        "initialisation_hash": workload.initialisation_hash,
        "scores": {score.name: score.value for score in workload.scores()},
    }
    assert json.loads(json.dumps(content, allow_nan=False)) == content
    return content


def refusal(text: str) -> str:
    """Return the message with which a workload's text is refused."""
    from deep500.core.errors import Deep500Error

    with pytest.raises(Deep500Error) as caught:
        open_workload(text)
    return str(caught.value)
