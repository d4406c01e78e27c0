"""Models written by others run in every executor, and train there, as in ONNX Runtime and in their own library."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

import deep500 as d5
from deep500.core.errors import UnsupportedOperatorError
from deep500.frameworks import FRAMEWORKS
from tests.conformance.real_model_sources import MissingPackageError, Model, Recipe
from tests.conformance.real_models import MODELS

#: What outputs and gradients may differ by, relative to the largest value of each tensor.
TOLERANCE = 1e-4

#: Gradients smaller than this part of the largest one are compared with it in place of themselves: what is zero in
#: exact arithmetic (a bias before BatchNormalization, the bias of keys) is the rounding of what is added up.
LEAST = 1e-3

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


def error_of(found, expected, floor=0.0):
    found, expected = np.asarray(found, np.float64), np.asarray(expected, np.float64)
    assert found.shape == expected.shape
    assert np.isfinite(expected).all()
    scale = max(np.abs(expected).max(initial=0.0), floor)
    return np.abs(found - expected).max(initial=0.0) / scale if scale else np.abs(found).max(initial=0.0)


def onnxruntime_outputs(model):
    runtime = pytest.importorskip("onnxruntime")
    session = runtime.InferenceSession(model.proto.SerializeToString(), providers=["CPUExecutionProvider"])
    inputs = {value.name: model.inputs[value.name] for value in session.get_inputs()}
    return dict(zip([output.name for output in session.get_outputs()], session.run(None, inputs)))


def gradients_by(framework, case_or_model, inputs):
    executor = FRAMEWORKS.get(framework).from_model(case_or_model.network)
    executor.inference_and_backprop(inputs)
    pairs = executor.network.gradient("loss")
    return {name: executor.network.fetch_tensors([gradient])[0] for name, gradient in pairs}


@pytest.fixture(
    scope="module",
    params=[pytest.param(r, id=r.name, marks=[pytest.mark.slow] if r.slow else []) for r in MODELS],
)
def case(request):
    recipe = request.param
    try:
        model = recipe.build()
    except MissingPackageError as error:
        pytest.skip(str(error))
    if model.own_gradients is not None:
        gradients = model.own_gradients()
    else:  # a file: PyTorch is what the others are compared with
        pytest.importorskip("torch")
        gradients = gradients_by("pytorch", model, {**model.inputs, "label": model.label})
    return Case(recipe, model, onnxruntime_outputs(model), gradients)


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
    largest = max(np.abs(gradient).max(initial=0.0) for gradient in case.gradients.values())
    errors = {n: error_of(found[n], g, LEAST * largest) for n, g in case.gradients.items()}
    wrong = {n: e for n, e in sorted(errors.items(), key=lambda pair: -pair[1]) if not e <= case.recipe.tolerance}
    assert not wrong, f"{len(wrong)} of {len(errors)} gradients differ: {dict(list(wrong.items())[:8])}"
    for name in set(found) - set(case.gradients):  # nothing depends on it
        assert not found[name].any()
    for name, gradient in found.items():
        (after,) = executor.network.fetch_tensors([name])
        np.testing.assert_allclose(after, before[name] - RATE * gradient, rtol=1e-5, atol=1e-6)
