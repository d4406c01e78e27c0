from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from deep500.core.errors import MeasurementError, UnsupportedOperatorError
from deep500.frameworks.reference.executor import ReferenceExecutor
from deep500.measure.results.document import content_hash
from deep500.measure.workload import open_workload
from deep500.networks.creation import create_model
from deep500.training.optimizers.gradient_descent import GradientDescent
from deep500.workloads import model as module
from tests.unit.workloads.support import opened, plain

SMALL = "model:mlp,shape=6,classes=3,hidden=[5],batch_size=4"


def test_run_is_a_training_step_on_the_next_minibatch(monkeypatch: pytest.MonkeyPatch) -> None:
    fed = []
    step = GradientDescent.step
    monkeypatch.setattr(GradientDescent, "step", lambda self, inputs: fed.append(inputs) or step(self, inputs))
    workload = open_workload(f"{SMALL},optimizer=gradient_descent")

    for _ in range(9):
        workload.run()

    assert [batch["input"].shape for batch in fed] == [(4, 6)] * 9
    assert fed[0] is fed[8]
    assert fed[0] is not fed[1]


def test_training_trains_and_inference_does_not() -> None:
    trained, inferred = opened(SMALL), opened(f"{SMALL},mode=inference")
    initial = create_model("mlp", shape=(6,), classes=3, hidden=[5]).weights_hash()

    assert trained._executor.network.weights_hash() != initial
    assert inferred._executor.network.weights_hash() == initial
    assert trained.initialisation_hash == inferred.initialisation_hash != trained._executor.network.weights_hash()


def test_what_it_says_of_itself_is_the_same_before_and_after_runs() -> None:
    workload = open_workload(SMALL)
    before = plain(workload)
    for _ in range(20):
        workload.run()

    assert plain(workload) == before


def test_identity_changes_with_all_that_is_computed_and_nothing_else() -> None:
    texts = [
        SMALL,
        f"{SMALL},mode=inference",
        f"{SMALL},optimizer=adam",
        f"{SMALL},learning_rate=0.01",
        f"{SMALL},loss=MeanSquaredError",
        f"{SMALL},dtype=float64",
        SMALL.replace("hidden=[5]", "hidden=[7]"),
        SMALL.replace("batch_size=4", "batch_size=5"),
        "model:mlp,hidden=[5],batch_size=4,dataset=digits",
    ]
    hashes = [content_hash(dict(open_workload(text).identity)) for text in texts]

    assert len(set(hashes)) == len(texts)
    for same in (f"{SMALL},native=False", f"{SMALL}@reference:cpu", f"{SMALL},seed=3"):
        assert content_hash(dict(open_workload(same).identity)) == hashes[0], same


def test_path_of_a_file_is_no_part_of_the_identity(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    for path in (tmp_path / "a.onnx", tmp_path / "elsewhere" / "b.onnx"):
        create_model("mlp", shape=(6,)).save(path)

    first, second = (open_workload(f"model:{tmp_path}/{name}") for name in ("a.onnx", "elsewhere/b.onnx"))

    assert first.identity == second.identity
    assert first.identity["model"] == "mlp"


def test_factors_say_where_minibatches_come_from_and_who_updates() -> None:
    made_up, read = open_workload(SMALL), open_workload("model:mlp,dataset=digits,mode=inference")

    assert made_up.factors["io"] == "synthetic, in memory"
    assert made_up.factors["optimizer_class"] == "deep500.training.optimizers.momentum.MomentumOptimizer"
    assert read.factors["io"] == "data set, read in each run"
    assert "optimizer_class" not in read.factors


@pytest.mark.parametrize("framework", ["pytorch", "tensorflow"])
def test_frameworks_own_optimizer_unless_told_otherwise(framework: str) -> None:
    pytest.importorskip({"pytorch": "torch"}.get(framework, framework))

    native, portable = (open_workload(f"{SMALL},native={n}@{framework}") for n in (True, False))

    assert native.factors["optimizer_class"] == f"deep500.frameworks.{framework}.optimizers.MomentumOptimizer"
    assert portable.factors["optimizer_class"] == "deep500.training.optimizers.momentum.MomentumOptimizer"
    for workload in (native, portable):
        for _ in range(3):
            workload.run()
    weights = [w._executor.network.fetch_tensors(w._executor.network.get_params()) for w in (native, portable)]
    for a, b in zip(*weights, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_work_of_inference_and_training() -> None:
    inference, training = open_workload(f"{SMALL},mode=inference").work, open_workload(SMALL).work
    forward = 4 * (2 * 6 * 5 + 5 + 5 + 2 * 5 * 3 + 3)  # two products with their biases, and one Relu
    loss = 4 * (5 * 3 + 1 + 2)
    parameters = 4 * (6 * 5 + 5 + 5 * 3 + 3)

    assert (inference.items, inference.item, inference.dtype) == (4, "sample", "float32")
    assert inference.flops == forward
    assert inference.bytes == parameters + 4 * 4 * 6 + 4 * 4 * 3
    assert training.flops == 3 * (forward + loss)
    assert training.bytes == 2 * parameters + 4 * 4 * 6 + 4 * 8


# --- scores -----------------------------------------------------------------------------------------------------------


def test_reference_agrees_with_itself() -> None:
    assert {s.name: s.value for s in opened(SMALL).scores()} == {
        "relative error of the first loss": 0.0,
        "L2 relative error of the first gradient": 0.0,
    }
    assert [(s.name, s.value) for s in opened(f"{SMALL},mode=inference").scores()] == [
        ("L2 relative error to the reference", 0.0)
    ]


@pytest.mark.parametrize("mode", ["training", "inference"])
def test_framework_that_computes_something_else_is_seen(monkeypatch: pytest.MonkeyPatch, mode: str) -> None:
    """A planted fault: what is measured doubles its outputs, or loses its gradients, and the oracle does not."""
    workload = opened(f"{SMALL},mode={mode}")
    run, differentiate = ReferenceExecutor._run, ReferenceExecutor._run_and_differentiate
    made: list[Any] = []
    place = ReferenceExecutor._place
    monkeypatch.setattr(ReferenceExecutor, "_place", lambda self, network: made.append(self) or place(self, network))

    def faulty_run(self: Any, *arguments: Any) -> Any:
        outputs = run(self, *arguments)
        return outputs if self is made[0] else {name: 2 * value for name, value in outputs.items()}

    def faulty_gradient(self: Any, *arguments: Any) -> Any:
        outputs = differentiate(self, *arguments)
        if self is not made[0]:
            self._gradients = {name: 0.5 * value for name, value in self._gradients.items()}
        return outputs

    monkeypatch.setattr(ReferenceExecutor, "_run", faulty_run)
    monkeypatch.setattr(ReferenceExecutor, "_run_and_differentiate", faulty_gradient)

    assert workload.scores()[-1].value == pytest.approx(1.0 if mode == "inference" else 0.5)


def test_training_that_diverges_is_refused() -> None:
    workload = open_workload(f"{SMALL},learning_rate=1e30")
    with np.errstate(all="ignore"):
        for _ in range(20):
            workload.run()

        with pytest.raises(MeasurementError, match=r"loss of the last training step is .*learning_rate below 1e"):
            workload.scores()


def test_training_for_long_stays_finite() -> None:
    workload = open_workload("model:simple_cnn,widths=[4],shape=1x4x4,classes=3,batch_size=4")
    for _ in range(1500):
        workload.run()

    assert workload.scores()[0].value == 0.0


def test_operator_that_the_reference_lacks_leaves_no_score(monkeypatch: pytest.MonkeyPatch) -> None:
    workload = opened(f"{SMALL},mode=inference")

    def lacks(self: Any, *arguments: Any) -> Any:
        raise UnsupportedOperatorError("no such operator")

    monkeypatch.setattr(ReferenceExecutor, "_run", lacks)

    assert workload.scores() == []


def test_reference_is_asked_for_no_more_than_it_can_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(module, "REFERENCE_FLOPS", 1)
    sizes: list[int] = []
    run = ReferenceExecutor._run
    monkeypatch.setattr(
        ReferenceExecutor, "_run", lambda self, program, fed: sizes.append(len(fed[0])) or run(self, program, fed)
    )
    create_model("mlp", 4, shape=(6,)).save(tmp_path / "fixed.onnx")

    open_workload(f"{SMALL},mode=inference").scores()
    open_workload(f"model:{tmp_path}/fixed.onnx,mode=inference").scores()

    assert sizes == [1, 1, 4, 4]
