"""The CUDA sources of native operators where there is no GPU: nvcc builds them, and their kernels are right.

For the latter the same sources are compiled by a C++ compiler, with ``cuda_on_cpu.h`` in CUDA's place.
"""

from __future__ import annotations

import inspect
import shutil
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import native_ops
from deep500.core.errors import OperatorError
from deep500.operators.custom.compiling import compile_custom_cppop_inline, compile_sources
from deep500.operators.custom.cpp_op import CppOp
from deep500.operators.native.devices import cuda_device_count
from deep500.operators.native.library import NativeLibrary
from tests.conformance.native_calls import CPU, CUDA, call, check_margins, room_for
from tests.conformance.native_op_cases import CASES, ONE_EACH, is_float, make_case

needs_nvcc = pytest.mark.skipif(shutil.which("nvcc") is None, reason="no nvcc")

#: Those that are built in every run of the tests.
QUICK = ["ipow 1", "gemm"]

DTYPES = [np.dtype(d) for d in (np.float32, np.float64, ml_dtypes.bfloat16, np.float16)]


# --- built by nvcc ----------------------------------------------------------------------------------------------------


def check_built(name: str) -> None:
    """Check that an operator is built for CUDA, runs on the processor, and says that there is no device."""
    case = make_case(name)
    op = case.op.compiled_for("cuda")
    assert op.library.description.devices == ("cpu", "cuda")
    assert op.library.description.dtypes == case.op.compiled_for("cpu").library.description.dtypes
    inputs, grads = case.cast(np.float32), case.gradients(np.float32)
    outputs = op.run_forward(inputs)
    case.check(inputs, grads, outputs, op.run_backward(grads, inputs, outputs) if op.differentiable else ())
    if cuda_device_count() > 0:
        return  # then its addresses would have to be those of a GPU
    for which, given, results in (
        ("forward", inputs, outputs),
        ("backward", [*grads, *inputs, *outputs], [x if x is not None and is_float(x) else None for x in inputs]),
    ):
        if which == "backward" and not op.differentiable:
            continue
        arrays = [None if x is None else np.ascontiguousarray(x) for x in given]
        answer = call(op.library, which, arrays, results, op.attributes, CUDA)
        assert answer.status == 1
        assert answer.message.startswith("there is no CUDA device that can be used: ")


@needs_nvcc
@pytest.mark.parametrize("names", [QUICK, pytest.param(ONE_EACH, marks=pytest.mark.slow)], ids=["two", "all"])
def test_built_for_cuda_and_no_device(names: list[str]) -> None:
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda name: make_case(name).op.compiled_for("cuda").library, names))
    for name in names:
        check_built(name)


@needs_nvcc
def test_a_tensor_on_a_gpu_needs_a_build_for_cuda() -> None:
    op = native_ops.IPow(power=2).compiled_for("cpu")
    x = np.ones(2, np.float32)

    answer = call(op.library, "forward", [x], [np.empty_like(x)], op.attributes, CUDA)

    assert answer.status == 3
    assert answer.message.startswith("the operator has no code for CUDA")


# --- its kernels on the processor -------------------------------------------------------------------------------------


@cache
def emulated(kind: type[CppOp]) -> NativeLibrary:
    """Return an operator whose kernels run on the processor."""
    source = Path(inspect.getfile(kind)).with_name(str(kind.cuda_source))
    text = f'#include "cuda_on_cpu.h"\n#include "{source}"  // which has the D500_OPERATOR(...)\n'
    flags = [f"-I{Path(__file__).parent}", "-O1", *kind.flags]
    return compile_sources(str(vars(kind)["name"]), [text], flags=flags)


def run_emulated(op: CppOp, inputs: Any, grads: Any, device: int = CUDA) -> tuple[list[Any], list[Any]]:
    """Return outputs and gradients from an operator's kernels."""
    library = emulated(type(op))
    outputs: list[Any] = room_for(op.run_forward(inputs))
    forward = call(library, "forward", inputs, outputs, op.attributes, device)
    assert forward.status == 0, forward.message
    check_margins(outputs)
    if not op.differentiable:
        return outputs, []
    gradients: list[Any] = room_for([x if x is not None and is_float(x) else None for x in inputs])
    backward = call(library, "backward", [*grads, *inputs, *outputs], gradients, op.attributes, device)
    assert backward.status == 0, backward.message
    check_margins(gradients)
    return outputs, gradients


def test_kernels_that_are_emulated_say_so() -> None:
    assert emulated(native_ops.IPow).description.devices == ("cpu", "cuda")


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", sorted(CASES))
def test_kernels_on_the_processor(name: str, dtype: Any) -> None:
    case = make_case(name)
    inputs, grads = case.cast(dtype), case.gradients(dtype)

    outputs, gradients = run_emulated(case.op, inputs, grads)

    case.check(inputs, grads, outputs, gradients)


@pytest.mark.parametrize("name", QUICK)
def test_some_kernels_on_the_processor(name: str) -> None:
    case = make_case(name)
    inputs, grads = case.cast(np.float32), case.gradients(np.float32)

    case.check(inputs, grads, *run_emulated(case.op, inputs, grads))


@pytest.mark.slow
@pytest.mark.parametrize("k", [0, 1, 700, 9000, 20_000])
def test_topk_of_many_parts(k: int) -> None:
    x = np.random.default_rng(1).integers(-50, 50, 20_000).astype(np.float32)
    op = native_ops.SparseTopK(k=k)
    values, indices = run_emulated(op, [x], [np.ones(k, np.float32), None])[0]

    for found, expected in zip((values, indices), op.run_forward([x]), strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.slow
def test_ipow_kernels_of_second_derivatives() -> None:
    x, g, h = (np.random.default_rng(i).uniform(0.5, 2, 300) for i in range(3))
    for power in (-2, 0, 1, 5):
        op, results = native_ops.IPow(power=power), []
        for device in (CPU, CUDA):
            by_g, by_x, by_y = (np.full_like(x, 7) for _ in range(3))
            answer = call(emulated(type(op)), "second", [h, g, x, None], [by_g, by_x, by_y], op.attributes, device)
            assert answer.status == 0, answer.message
            results.append((by_g, by_x, by_y))
        for one, other in zip(*results, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-13)


@pytest.mark.slow
def test_labels_and_steps_that_are_none_give_nan_on_a_gpu() -> None:
    """On a device nobody waits for an error; the processor has one."""
    scores, labels = np.zeros((3, 4), np.float32), np.array([0, 4, -1])
    op = native_ops.SoftmaxCrossEntropy(reduction="none")
    loss, log_prob = np.zeros(3, np.float32), np.zeros_like(scores)
    assert (
        call(emulated(type(op)), "forward", [scores, labels, None], [loss, log_prob], op.attributes, CUDA).status == 0
    )
    assert np.isnan(loss).tolist() == [False, True, True]

    adam, x, step = native_ops.AdamStep(), np.ones(2, np.float32), np.array(0)
    outputs = [np.zeros_like(x) for _ in range(3)]
    assert call(emulated(type(adam)), "forward", [x, x, x, x, step], outputs, adam.attributes, CUDA).status == 0
    assert np.isnan(outputs[0]).all()
    with pytest.raises(OperatorError, match="step is 0"):
        adam(x, x, x, x, step)


def test_a_barrier_that_not_all_threads_reach_is_found() -> None:
    source = """
    #include "cuda_on_cpu.h"
    #include <deep500/cuda.h>
    #include <deep500/operator.h>
    __global__ void halting(const float* x, float* y) {
        if (threadIdx.x > 100) return;
        __syncthreads();
        y[0] = x[0];
    }
    struct Halting {
        static void forward(deep500::View<const float> x, deep500::View<float> y) { y[0] = x[0]; }
        static void forward_cuda(deep500::View<const float> x, deep500::View<float> y, deep500::Stream stream) {
            deep500::launch_blocks(halting, 1, stream, x.data(), y.data());
        }
    };
    D500_OPERATOR(halting, Halting)
    """
    op = compile_custom_cppop_inline("halting", source, flags=[f"-I{Path(__file__).parent}", "-O1"])
    x = np.ones(1, np.float32)

    answer = call(op.library, "forward", [x], [np.zeros_like(x)], {}, CUDA)

    assert (answer.status, answer.message) == (
        1, "CUDA: starting a kernel failed: not all threads of a block reach a barrier",
    )  # fmt: skip
