from __future__ import annotations

import pytest

from deep500.measure.workload import open_workload
from tests.unit.workloads.support import opened, plain, refusal


def test_smallest_product() -> None:
    workload = opened("deepbench:gemm,size=129,form=wrapped")

    assert workload.identity["problem"] == "deepbench:gemm"
    assert [workload.identity[name] for name in "mnk"] == [512, 16, 512]
    assert workload.work.flops == 2 * 512 * 16 * 512
    assert plain(workload)["scores"]["L2 relative error to the reference"] == 0.0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("deepbench:gemm", "names no size; accepted is size=N with N from 1 to 160"),
        ("deepbench:gemm,size=161", "The size 161 of gemm was asked for; there are 1 to 160."),
        ("deepbench:gemm,size=0", "size was given as 0"),
        ("deepbench:gem,size=1", "Did you mean 'gemm'?"),
        ("deepbench:gemm,size=129,form=bare", "accepted is one of native, wrapped"),
        ("deepbench:gemm,size=129,dtype=int8", "accepted is one of float16, bfloat16, float32, float64"),
        ("deepbench:gemm,size=129,sise=2", "has the unknown option 'sise'. Did you mean 'size'?"),
        ("deepbench:gemm,size=129,dtype=float16", "NumPy multiplies matrices of float16 element by element"),
        ("deepbench:gemm,size=129@torch", "Did you mean 'pytorch'?"),
        ("deepbench:gemm,size=129@reference:gpu", "gpu"),
        ("deepbench:rnn,size=51", "The NumPy reference cannot compute RecurrentProblem (gru 1x32x512)"),
        ("deepbench:all_reduce,size=1", "needs several processes that exchange data"),
    ],
)
def test_what_cannot_be_computed_is_refused_in_one_line(text: str, message: str) -> None:
    told = refusal(text)

    assert message in told
    assert "\n" not in told


def test_recurrent_layer_runs_where_there_is_one() -> None:
    torch = pytest.importorskip("torch")
    workload = open_workload("deepbench:rnn,size=51,form=wrapped@pytorch")

    output = workload.run()

    assert tuple(output.shape) == (1, 32, 512)
    assert bool(torch.isfinite(output).all())
