"""What several conformance suites ask for."""

from __future__ import annotations

import pytest

from deep500.frameworks import FRAMEWORKS
from tests.conformance.custom_harnesses import HARNESSES, Harness


@pytest.fixture(params=sorted(HARNESSES))
def harness(request: pytest.FixtureRequest) -> Harness:
    if not FRAMEWORKS.get(request.param).REQUIREMENT.is_installed():
        pytest.skip(f"{request.param} is not installed")
    return HARNESSES[request.param]
