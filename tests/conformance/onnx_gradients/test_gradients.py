"""Every differentiable operator has the right gradient in every framework."""

from __future__ import annotations

import pytest

from deep500.core.errors import UnsupportedOperatorError
from deep500.frameworks import FRAMEWORKS
from tests.conformance.onnx_gradients.cases import load_strategies
from tests.conformance.onnx_gradients.harness import check_gradients, drawn

#: Cases for each operator; a trace of TensorFlow costs a hundred times what a run of the reference does.
COUNTS = {"reference": 4, "tensorflow": 1}
DEFAULT_COUNT = 2

#: Frameworks that lack kernels in float64, or rules of differentiation, and say so.
PARTIAL = {"onnxruntime"}


@pytest.fixture(params=FRAMEWORKS.names())
def framework(request):
    if not FRAMEWORKS.get(request.param).REQUIREMENT.is_installed():
        pytest.skip(f"{request.param} is not installed")
    return request.param


def check(framework, cases):
    for case in cases:
        try:
            check_gradients(framework, case)
        except UnsupportedOperatorError:
            if framework not in PARTIAL:
                raise


@pytest.mark.parametrize("operator", load_strategies())
def test_gradients_are_the_derivatives_of_the_reference(framework, operator):
    check(framework, drawn(operator, max(COUNTS.values()))[: COUNTS.get(framework, DEFAULT_COUNT)])


@pytest.mark.slow
@pytest.mark.parametrize("operator", load_strategies())
def test_gradients_over_many_cases(framework, operator):
    check(framework, drawn(operator, 30))
