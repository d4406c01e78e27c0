"""Every kind of workload passes one contract, under every framework that is installed."""

from __future__ import annotations

import functools
import hashlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from deep500.core.errors import Deep500Error, UnsupportedOperatorError
from deep500.frameworks import FRAMEWORKS, frameworks_offering
from deep500.measure.results.document import content_hash
from deep500.measure.sampling.plan import SamplingPlan
from deep500.measure.sampling.sampler import sample
from deep500.measure.workload import WORKLOADS, Direction, Workload, open_workload

RECIPE = """
import deep500 as d5

FIXED = {"model": "mlp", "model_kwargs": dict(hidden=[8]), "dataset": "digits", "epochs": 1}
MUTABLE = {"batch_size": 128, "executor": "reference", "optimizer": "momentum"}
METRICS = [(d5.TestAccuracy(), 10.0)]
"""

CUSTOM_OPERATOR = """
import deep500 as d5

class Cube(d5.CustomPythonOp):
    def __init__(self, factor=1.0):
        super().__init__()
        self.factor = factor

    def forward(self, x):
        return self.factor * x * x * x

    def backward(self, grads, fwd_inputs, fwd_outputs):
        return 3 * self.factor * grads[0] * fwd_inputs[0] * fwd_inputs[0]
"""

#: Workloads that a framework runs, without the framework.
PLACED = {
    "training": "model:lenet,shape=1x8x8,batch_size=4",
    "training with statistics": "model:simple_cnn,shape=2x6x6,widths=[4],batch_size=4,optimizer=adam,native=False",
    "training on a data set": "model:mlp,hidden=[8],dataset=digits,batch_size=8",
    "inference": "model:resnet,depth=8,width=4,shape=3x8x8,batch_size=4,mode=inference",
    "operator": "op:Conv,X=2x3x8x8,W=4x3x3x3,B=4,pads=[1,1,1,1]",
    "operator's gradient": "op:Softmax,input=8x5,mode=gradient",
    "operator on constants": "op:ReduceSum,data=4x6,axes=[1],mode=gradient",
    "operator on labels": "op:SoftmaxCrossEntropyLoss,scores=16x5,labels=16:int64",
    "product of a problem set": "deepbench:gemm,size=129,form=wrapped",
    "convolution of a problem set": "deepbench:convolution,size=44",
    "file": "model:{folder}/own.onnx,batch_size=4",
    "recipe": "recipe:{folder}/small.py",
    "custom operator": "custom:{folder}/own_op.py:Cube",
    "custom operator's gradient": "custom:{folder}/own_op.py:Cube,factor=0.5,call.mode=gradient",
}

#: Workloads that no framework runs.
UNPLACED = {"dataset": "dataset:digits,batch_size=100", "callable": "conformance_sum:total,size=10"}

INSTALLED = [name for name in FRAMEWORKS.names() if FRAMEWORKS.get(name).REQUIREMENT.is_installed()]

#: Relative: float32 rounds to 6e-8, and sums of up to a few hundred products are added in another order.
TOLERANCE = 1e-5


@pytest.fixture(scope="module", autouse=True)
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A working folder with a recipe, a network in a file, and a module."""
    from deep500.networks import create_model

    made = tmp_path_factory.mktemp("workloads")
    (made / "small.py").write_text(RECIPE)
    (made / "own_op.py").write_text(CUSTOM_OPERATOR)
    (made / "conformance_sum.py").write_text("def total(size):\n    return sum(range(size))\n")
    create_model("mlp", shape=(6,), classes=3).save(made / "own.onnx")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(made)
        yield made
    sys.modules.pop("conformance_sum", None)
    described.cache_clear()


@functools.cache
def described(text: str) -> dict[str, Any]:
    """Run a workload twice; return all that it says of itself, through JSON and back."""
    workload = open_workload(text)
    workload.run()
    workload.run()
    workload.synchronize()
    scores = [(score.name, score.value, score.direction is Direction.LOWER) for score in workload.scores()]
    content = {
        "identity": dict(workload.identity),
        "workload_hash": content_hash(dict(workload.identity)),
        "factors": dict(workload.factors),
        "data_hash": workload.data_hash,
        "initialisation_hash": workload.initialisation_hash,
        "work": vars(workload.work),
        "scores": scores,
    }
    workload.close()
    return dict(json.loads(json.dumps(content, allow_nan=False)))


#: What an adapter has to offer for a workload, where not all do.
NEEDS = {
    "product of a problem set": "problem_function",
    "convolution of a problem set": "problem_function",
    "custom operator": "prepare_call",
    "custom operator's gradient": "prepare_call",
}


def is_refused(name: str, framework: str, text: str) -> bool:
    """Whether a framework's adapter lacks what a workload needs; then check that it is refused."""
    needed = NEEDS.get(name)
    if needed is None or framework in frameworks_offering(needed):
        return False
    with pytest.raises(UnsupportedOperatorError, match=f"{framework} has no {needed}"):
        open_workload(text)
    return True


@pytest.mark.parametrize("framework", INSTALLED)
@pytest.mark.parametrize("name", PLACED)
def test_frameworks_do_the_same_work(name: str, framework: str, folder: Path) -> None:
    text = PLACED[name].format(folder=folder)
    if is_refused(name, framework, f"{text}@{framework}"):
        return
    own, reference = described(f"{text}@{framework}"), described(f"{text}@reference")

    for what in ("identity", "workload_hash", "data_hash", "initialisation_hash", "work"):
        assert own[what] == reference[what], what
    assert own["data_hash"] is not None
    assert (own["initialisation_hash"] is None) == text.startswith(("op:", "custom:", "deepbench:"))
    factors = own["factors"]
    assert (factors["framework"], factors["device"]) == (framework, "cpu")
    assert factors["framework_version"] == FRAMEWORKS.get(framework).REQUIREMENT.version()
    assert all(value is None or isinstance(value, (str, int, float, bool)) for value in factors.values())
    assert framework not in json.dumps(own["identity"]) or framework == "reference"
    assert own["scores"]
    for score, value, lower_is_better in own["scores"]:
        assert not lower_is_better or value <= (0.0 if framework == "reference" else TOLERANCE), score


@pytest.mark.parametrize("name", PLACED)
def test_reference_runs_what_names_no_framework(name: str, folder: Path) -> None:
    text = PLACED[name].format(folder=folder)

    assert described(text) == described(f"{text}@reference")


@pytest.mark.parametrize("name", UNPLACED)
def test_what_no_framework_runs_passes_too(name: str) -> None:
    content = described(UNPLACED[name])

    assert "framework" not in content["factors"]
    assert content["identity"]["problem"]
    with pytest.raises(Deep500Error, match="no framework runs the workloads"):
        open_workload(f"{UNPLACED[name]}@reference")


@pytest.mark.parametrize("framework", INSTALLED)
@pytest.mark.parametrize("name", [name for name in PLACED if name != "recipe"])
def test_run_does_nothing_but_the_work(
    name: str, framework: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A recipe hashes its minibatches itself; nothing else hashes in a run, or compares with the reference."""
    from deep500.frameworks.reference.executor import ReferenceExecutor

    text = f"{PLACED[name].format(folder=folder)}@{framework}"
    if is_refused(name, framework, text):
        return
    workload = open_workload(text)
    workload.run()

    def refuse(*arguments: Any, **named: Any) -> Any:
        raise AssertionError("this belongs outside of the runs")

    monkeypatch.setattr(hashlib, "sha256", refuse)
    if framework != "reference":
        monkeypatch.setattr(ReferenceExecutor, "_run", refuse)
        monkeypatch.setattr(ReferenceExecutor, "_run_and_differentiate", refuse)
    ran = [workload.run() for _ in range(2)]
    workload.synchronize()
    monkeypatch.undo()

    assert len(ran) == 2
    assert workload.scores()


@pytest.mark.parametrize("framework", INSTALLED)
def test_frameworks_are_sampled_side_by_side(framework: str) -> None:
    """As the engine does it: one process, a round over both, and each a series of its own."""
    text = PLACED["operator"]
    workloads: list[Workload] = [open_workload(f"{text}@{name}") for name in ("reference", framework)]
    plan = SamplingPlan(minimum_time_s=0.0, time_limit_s=0.2, maximum_samples=20, warm_up=1)

    samples = sample(workloads, plan)

    assert [len(series.samples) >= 10 for series in samples.series] == [True, True]
    assert all(value > 0 for series in samples.series for value in series.samples)


@pytest.mark.parametrize("text", [*PLACED.values(), *UNPLACED.values()])
def test_slip_in_an_option_is_refused_in_one_line(text: str, folder: Path) -> None:
    with pytest.raises(Deep500Error) as caught:
        open_workload(text.format(folder=folder) + ",no_such_option=1")

    message = str(caught.value)
    assert "no_such_option" in message
    assert "\n" not in message


@pytest.mark.parametrize("text", PLACED.values())
@pytest.mark.parametrize(
    ("place", "message"),
    [("referense", "Did you mean 'reference'"), ("reference:gpu:99", "gpu:99"), ("reference:x", "x")],
)
def test_slip_in_the_place_is_refused_in_one_line(text: str, place: str, message: str, folder: Path) -> None:
    with pytest.raises(Deep500Error, match=message) as caught:
        open_workload(f"{text.format(folder=folder)}@{place}").run()  # a recipe looks for its device when it runs

    assert "\n" not in str(caught.value)


def test_every_kind_is_covered() -> None:
    kinds = {text.partition(":")[0] for text in [*PLACED.values(), *UNPLACED.values()]}

    assert set(WORKLOADS.names()) == (kinds - {"conformance_sum"}) | {"callable"}
