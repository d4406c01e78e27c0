"""Models written by others run in every executor, and train there, as in ONNX Runtime and in their own library."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
import pytest

import deep500 as d5
from deep500.core.errors import UnsupportedOperatorError
from deep500.frameworks import FRAMEWORKS
from tests.conformance.onnx_gradients._gradient_graph import GRADIENT_GRAPH, find_adapter
from tests.conformance.real_model_sources import MissingPackageError, Model, Recipe
from tests.conformance.real_models import MODELS

#: What outputs and gradients may differ by, relative to the largest value of each tensor.
TOLERANCE = 1e-4

#: Gradients smaller than this part of the largest one are compared with it in place of themselves: what is zero in
#: exact arithmetic (a bias before BatchNormalization, the bias of keys) is the rounding of what is added up.
LEAST = 1e-3

#: What gradients may differ by in float64. Those of deep networks in training mode are ill-conditioned: statistics of
#: few numbers, and ReLUs and maxima that rounding decides, magnify the rounding of float32 by orders of magnitude.
#: Where they differ in float32, those of the same model in float64 tell whether rounding is all there is to it.
EXACT = 1e-6

#: How many times as far from them all gradients together may then be in float32 as the library's own in float32 are.
FACTOR = 10.0

#: What they may be off in any case, against gross faults of float32 alone: a ReLU or a maximum that rounding turned
#: over in one library and not in another moves them by a percent (1.3 in ShuffleNet, where float64 agrees to 1e-9).
KINKS = 0.1

RATE = 0.125


@dataclass
class Case:
    """A model with what is expected of it."""

    recipe: Recipe
    model: Model
    outputs: dict
    gradients: dict

    @property
    def fed(self) -> dict:
        return {**self.model.inputs, "label": self.model.label}

    @functools.cached_property
    def exact(self) -> tuple[Model, dict]:
        """The same model in float64, and the gradients that its own library computes for it."""
        model = self.model.in_float64()
        return model, expected_gradients(model)


def error_of(found, expected, floor=0.0):
    found, expected = np.asarray(found, np.float64), np.asarray(expected, np.float64)
    assert found.shape == expected.shape
    assert np.isfinite(expected).all()
    scale = max(np.abs(expected).max(initial=0.0), floor)
    return np.abs(found - expected).max(initial=0.0) / scale if scale else np.abs(found).max(initial=0.0)


def differing(found, expected, tolerance):
    """The gradients that differ by more, with what they differ by, the worst first."""
    largest = max(np.abs(gradient).max(initial=0.0) for gradient in expected.values())
    errors = {n: error_of(found[n], g, LEAST * largest) for n, g in expected.items()}
    return {n: e for n, e in sorted(errors.items(), key=lambda pair: -pair[1]) if not e <= tolerance}


def distance(found, expected):
    """How far all gradients together, as one vector, are from what is expected, relative to its length."""
    parts = [(np.asarray(found[n], np.float64) - g, np.asarray(g, np.float64)) for n, g in expected.items()]
    lengths = [np.sqrt(sum(np.square(part).sum() for part in column)) for column in zip(*parts, strict=True)]
    return lengths[0] / lengths[1]


def onnxruntime_outputs(model):
    runtime = pytest.importorskip("onnxruntime")
    session = runtime.InferenceSession(model.proto.SerializeToString(), providers=["CPUExecutionProvider"])
    inputs = {value.name: model.inputs[value.name] for value in session.get_inputs()}
    return dict(zip([output.name for output in session.get_outputs()], session.run(None, inputs)))


def gradients_by(framework, case_or_model, inputs):
    executor = find_adapter(framework).from_model(case_or_model.network)
    executor.inference_and_backprop(inputs)
    pairs = executor.network.gradient("loss")
    return {name: executor.network.fetch_tensors([gradient])[0] for name, gradient in pairs}


def expected_gradients(model):
    if model.own_gradients is not None:
        return model.own_gradients()
    pytest.importorskip("torch")  # a file: PyTorch is what the others are compared with
    return gradients_by("pytorch", model, {**model.inputs, "label": model.label})


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(r, id=r.name, marks=[pytest.mark.slow, pytest.mark.timeout(1800)] if r.slow else [])
        for r in MODELS
    ],
)
def case(request):
    recipe = request.param
    try:
        model = recipe.build()
    except MissingPackageError as error:
        pytest.skip(str(error))
    return Case(recipe, model, onnxruntime_outputs(model), expected_gradients(model))


@pytest.fixture(params=FRAMEWORKS.names())
def adapter(request, case):
    module = FRAMEWORKS.get(request.param)
    if not module.REQUIREMENT.is_installed():
        pytest.skip(f"{request.param} is not installed")
    if request.param == "reference" and not case.recipe.by_reference:
        pytest.skip("it is too large for the NumPy reference")
    return module


def test_outputs_are_those_of_onnxruntime(case, adapter):
    mode = case.model.network.mode
    try:
        outputs = adapter.from_model(case.model.network.detached().eval()).inference(case.model.inputs)
    finally:
        assert case.model.network.mode == mode
    assert list(outputs) == list(case.outputs)
    errors = {name: error_of(outputs[name], expected) for name, expected in case.outputs.items()}
    assert max(errors.values()) <= TOLERANCE, errors


def test_outputs_are_those_of_the_library_that_the_model_is_from(case):
    if case.model.own_outputs is None:
        pytest.skip("it comes as a file")
    own = case.model.own_outputs
    assert len(own) == len(case.outputs)
    assert max(error_of(found, expected) for found, expected in zip(case.outputs.values(), own)) <= TOLERANCE


def test_a_step_of_training_has_the_same_gradients(case, adapter):
    executor = adapter.from_model(case.model.network)
    names = executor.network.get_params()
    before = dict(zip(names, executor.network.fetch_tensors(names)))
    try:
        optimizer = d5.GradientDescent(executor, "loss", RATE)  # puts the network in training mode
        if case.model.network.mode == "eval":
            executor.network.eval()
        optimizer.step(case.fed)
    except UnsupportedOperatorError as error:
        if executor.framework != "onnxruntime":
            raise
        pytest.skip(f"ONNX Runtime is trained by the gradient as a graph, which lacks an operator: {error}")
    found = {name: executor.network.fetch_tensors([g])[0] for name, g in executor.network.gradient("loss")}
    assert set(case.gradients) <= set(found)
    wrong = differing(found, case.gradients, case.recipe.tolerance)
    if wrong and case.model.in_float64 is not None:
        model, gradients = case.exact
        allowed = max(FACTOR * distance(case.gradients, gradients), KINKS)
        assert distance(found, gradients) <= allowed, list(wrong.items())[:8]
        # ONNX Runtime has no convolution in float64; the reference runs the gradient as a graph in its place.
        framework = GRADIENT_GRAPH if executor.framework == "onnxruntime" else executor.framework
        wrong = differing(gradients_by(framework, model, {**model.inputs, "label": model.label}), gradients, EXACT)
    assert not wrong, f"{len(wrong)} of {len(found)} gradients differ: {dict(list(wrong.items())[:8])}"
    for name in set(found) - set(case.gradients):  # nothing depends on it
        assert not found[name].any()
    for name, gradient in found.items():
        (after,) = executor.network.fetch_tensors([name])
        np.testing.assert_allclose(after, before[name] - RATE * gradient, rtol=1e-5, atol=1e-6)
