"""Every differentiable operator has the right gradient in every framework."""

from __future__ import annotations

import pytest

from deep500.core.errors import Deep500Error, UnsupportedOperatorError
from deep500.frameworks import FRAMEWORKS
from tests.conformance.onnx_gradients._gradient_graph import GRADIENT_GRAPH, REFUSED
from tests.conformance.onnx_gradients.cases import load_strategies
from tests.conformance.onnx_gradients.harness import check_gradients, drawn

#: Cases for each operator; a trace of TensorFlow costs a hundred times what a run of the reference does.
COUNTS = {"reference": 4, "tensorflow": 1}
DEFAULT_COUNT = 2

#: Operators of which ONNX Runtime computes gradients in float64, of those there are; it has no kernel for the others.
RUNS_IN_ONNXRUNTIME = 80

#: Operators whose float64 kernels in ONNX Runtime compute with constants of 32 bits.
INACCURATE_IN_ONNXRUNTIME = {"DFT", "Gelu", "STFT"}


@pytest.fixture(params=[*(name for name in FRAMEWORKS.names() if name != "onnxruntime"), GRADIENT_GRAPH])
def framework(request):
    if request.param != GRADIENT_GRAPH and not FRAMEWORKS.get(request.param).REQUIREMENT.is_installed():
        pytest.skip(f"{request.param} is not installed")
    return request.param


def check(framework, operator, cases):
    for case in cases:
        try:
            check_gradients(framework, case)
        except UnsupportedOperatorError:
            if framework != GRADIENT_GRAPH or operator not in REFUSED:
                raise
            with pytest.raises(UnsupportedOperatorError, match=REFUSED[operator]):
                raise


@pytest.mark.parametrize("operator", load_strategies())
def test_gradients_are_the_derivatives_of_the_reference(framework, operator):
    check(framework, operator, drawn(operator, max(COUNTS.values()))[: COUNTS.get(framework, DEFAULT_COUNT)])


@pytest.mark.slow
@pytest.mark.parametrize("operator", load_strategies())
def test_gradients_over_many_cases(framework, operator):
    check(framework, operator, drawn(operator, 30))


def test_onnxruntime_computes_gradients_or_refuses():
    """It has few kernels for float64, in which derivatives can be checked; what it has no kernel for it refuses."""
    if not FRAMEWORKS.get("onnxruntime").REQUIREMENT.is_installed():
        pytest.skip("onnxruntime is not installed")
    right, wrong = [], []
    for operator in load_strategies().keys() - INACCURATE_IN_ONNXRUNTIME:
        try:
            check_gradients("onnxruntime", drawn(operator, max(COUNTS.values()))[0])
        except UnsupportedOperatorError:
            continue
        except (AssertionError, Deep500Error) as error:
            wrong.append(f"{operator}: {error}")
        else:
            right.append(operator)
    assert wrong == []
    assert len(right) >= RUNS_IN_ONNXRUNTIME
