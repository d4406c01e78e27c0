from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

from deep500.core.errors import UnsupportedOperatorError
from deep500.frameworks import FRAMEWORKS
from deep500.frameworks.reference.problem_functions import problem_function
from deep500.measure.results.document import content_hash
from deep500.measure.sampling.launch import run_launch
from deep500.measure.sampling.plan import SamplingPlan
from deep500.measure.workload import Workload, WorkloadSpec, parse_workload
from deep500.operators.problem_set import ProblemSet
from deep500.operators.problems import AllReduceProblem, ConvolutionProblem, GemmProblem, Problem, RecurrentProblem
from deep500.workloads import _problem as module
from deep500.workloads._problem import check_measurable, problem_workload
from tests.unit.workloads.support import plain


class Small(ProblemSet):
    @property
    def operations(self) -> tuple[str, ...]:
        return ("gemm", "convolution", "rnn", "all_reduce")

    def _problems(self, operation: str) -> tuple[Problem, ...]:
        return {
            "gemm": (GemmProblem(6, 4, 5), GemmProblem(6, 4, 5, True)),
            "convolution": (ConvolutionProblem(6, 5, 2, 3, 4, 3, 3, 1, 1),),
            "rnn": (RecurrentProblem(4, 2, 3, "gru"),),
            "all_reduce": (AllReduceProblem(10),),
        }[operation]


def opened(text: str) -> Any:
    """Open a workload of the small set, which has no kind of its own, under the name of another."""
    spec = parse_workload(f"deepbench:{text}")
    workload = problem_workload(spec, Small())
    workload.spec = spec.text
    return workload


def test_run_is_a_call_of_the_function_and_nothing_else() -> None:
    workload = opened("gemm,size=2")

    assert workload.run.func is np.matmul
    assert workload.run.args == workload._shared.native.inputs
    assert workload.run().shape == (6, 4)
    np.testing.assert_array_equal(type(workload).run(workload), workload.run())


def test_wrapped_form_goes_through_the_operator() -> None:
    workload = opened("gemm,size=1,form=wrapped")
    operator = workload.run.func.__self__

    assert operator.name == "GemmProblem"
    np.testing.assert_array_equal(workload.run(), opened("gemm,size=1").run())


def test_both_forms_of_a_process_have_the_tensors_in_common() -> None:
    native, wrapped = opened("gemm,size=1"), opened("gemm,size=1,form=wrapped")
    assert native._shared is wrapped._shared
    others = [opened(text) for text in ("gemm,size=2", "gemm,size=1,seed=1", "gemm,size=1,dtype=float64")]
    assert all(other._shared is not native._shared for other in others)


def test_tensors_are_given_back_when_all_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []
    monkeypatch.setattr(module, "_Shared", lambda *key: made.append(key) or original(*key))  # type: ignore[func-returns-value]
    first, second = opened("gemm,size=1"), opened("gemm,size=1,form=wrapped")
    assert len(made) == 1
    for workload in (first, second, second):
        workload.close()
    gc.collect()

    assert not list(module._IN_USE)
    third = opened("gemm,size=1")
    assert len(made) == 2
    third.close()


original = module._Shared


def test_identity_is_the_problem_and_not_the_form() -> None:
    native, wrapped = opened("gemm,size=2"), opened("gemm,size=2,form=wrapped")

    assert native.identity == {
        "problem": "deepbench:gemm",
        "m": 6,
        "n": 4,
        "k": 5,
        "a_transposed": True,
        "b_transposed": False,
        "dtype": "float32",
    }
    assert native.identity == wrapped.identity
    assert (native.factors["form"], wrapped.factors["form"]) == ("native", "wrapped")
    assert {**native.factors, "form": ""} == {**wrapped.factors, "form": ""}
    assert native.factors["framework"] == "reference"
    texts = ["gemm,size=1", "gemm,size=2", "gemm,size=2,dtype=float64", "convolution,size=1"]
    assert len({content_hash(dict(opened(text).identity)) for text in texts}) == len(texts)


def test_work_and_data() -> None:
    workload = opened("convolution,size=1")

    assert workload.work.flops == ConvolutionProblem(6, 5, 2, 3, 4, 3, 3, 1, 1).flops
    assert workload.work.bytes == 4 * (3 * 2 * 5 * 6 + 4 * 2 * 3 * 3 + 3 * 4 * 5 * 6)
    assert workload.work.dtype == "float32"
    assert workload.data_hash == opened("convolution,size=1,form=wrapped").data_hash
    assert workload.data_hash != opened("convolution,size=1,seed=1").data_hash
    assert plain(workload)["scores"] == {"L2 relative error to the reference": 0.0}


def test_weights_of_recurrent_layers_keep_states_in_bounds() -> None:
    torch = pytest.importorskip("torch")
    workload = opened("rnn,size=1@pytorch")
    arrays = workload._shared.arrays

    assert 0.2 < np.std(arrays["W"]) < 0.9  # 1 / sqrt(4)
    assert 0.6 < np.std(arrays["X"]) < 1.4
    assert bool(torch.isfinite(workload.run()).all())
    assert workload.scores() == []


def test_result_that_is_wrong_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    from deep500.frameworks import FRAMEWORKS

    def wrong(problem: Problem, arrays: Any, device: Any) -> Any:
        native = problem_function(problem, arrays, device)
        return type(native)(lambda a, b: 1.01 * np.matmul(a, b), native.inputs, native.to_numpy)

    monkeypatch.setattr(FRAMEWORKS.get("reference"), "problem_function", wrong, raising=False)
    (score,) = opened("gemm,size=1,seed=7").scores()

    assert score.value == pytest.approx(0.01, rel=1e-3)


def test_part_of_a_large_result_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    from deep500.operators import problem_reference

    monkeypatch.setattr(problem_reference, "_MOST_FLOPS", GemmProblem(6, 4, 5).flops / 3)
    workload = opened("gemm,size=1,seed=8")

    assert workload._shared.expected.values.shape == (2, 4)
    assert workload.scores()[0].value < 1e-6


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_dtypes(dtype: str) -> None:
    pytest.importorskip("torch")
    workload = opened(f"gemm,size=1,dtype={dtype}@pytorch")

    assert str(workload.run().dtype) == f"torch.{dtype}"
    assert workload.scores()[0].value < (1e-14 if dtype == "float64" else 0.01)


def test_device_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    from deep500.frameworks import FRAMEWORKS

    waits: list[int] = []

    def on_device(problem: Problem, arrays: Any, device: Any) -> Any:
        native = problem_function(problem, arrays, device)
        return type(native)(native.function, native.inputs, native.to_numpy, lambda: waits.append(1))

    monkeypatch.setattr(FRAMEWORKS.get("reference"), "problem_function", on_device, raising=False)
    workload = opened("gemm,size=1,seed=9")
    workload.synchronize()

    assert waits == [1]


def test_both_forms_are_measured_in_one_launch() -> None:
    """As the engine does it, in a fresh process: built anew several times, closed, and described."""
    plan = SamplingPlan(minimum_time_s=0.05, time_limit_s=0.5, warm_up=1, builds=2)

    def open_one(form: str) -> Workload:
        found: Workload = opened(f"gemm,size=1,form={form}")
        return found

    launch = run_launch([lambda: open_one("native"), lambda: open_one("wrapped")], plan, fresh=True, environment=False)

    assert [system.factors["form"] for system in launch.systems] == ["native", "wrapped"]
    assert launch.systems[0].data_hash == launch.systems[1].data_hash
    assert not list(module._IN_USE)


def test_adapter_without_problems_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "load_framework", lambda name: object())
    monkeypatch.setitem(FRAMEWORKS._loaded, "other", object())

    with pytest.raises(UnsupportedOperatorError, match="The adapter of other has no problem_function"):
        problem_workload(WorkloadSpec("x", "small", "gemm", {"size": 1}, "other"), Small())


def test_problem_of_several_processes_is_refused() -> None:
    with pytest.raises(UnsupportedOperatorError, match="small:all_reduce needs several processes"):
        check_measurable("small:all_reduce", AllReduceProblem(10))
    check_measurable("small:gemm", GemmProblem(1, 1, 1))
