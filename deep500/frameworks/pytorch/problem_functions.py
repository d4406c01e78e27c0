"""How PyTorch computes the problems of problem sets."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import torch
from numpy.typing import NDArray

from deep500.core.device import Device
from deep500.core.errors import UnsupportedOperatorError
from deep500.frameworks.pytorch._arrays import to_array, to_tensor
from deep500.frameworks.pytorch.device import torch_device
from deep500.operators.problems import ConvolutionProblem, GemmProblem, NativeProblem, Problem, RecurrentProblem

__all__ = ["problem_function"]

#: A function, and the tensors that it takes.
_Call = tuple[Callable[..., torch.Tensor], tuple[torch.Tensor, ...]]


def problem_function(problem: Problem, arrays: Mapping[str, NDArray[Any]], device: Device) -> NativeProblem:
    """Return how PyTorch computes a problem.

    These are ``torch.matmul`` (of transposed views, which its BLAS takes as they are), ``torch.nn.functional.conv2d``,
    and ``torch.rnn_relu``, ``torch.lstm`` and ``torch.gru``.

    Args:
        problem: The problem.
        arrays: Its inputs, by name; on the processor their memory is shared.
        device: Where to run.

    Raises:
        DeviceError: PyTorch does not see the device.
        UnsupportedOperatorError: PyTorch has no such function here.
    """
    place = torch_device(device)
    make = _MAKERS.get(type(problem))
    if make is None:
        raise UnsupportedOperatorError(f"PyTorch has no function here for {type(problem).__name__} ({problem.title}).")
    function, inputs = make(problem, {name: to_tensor(array).to(place) for name, array in arrays.items()})
    synchronize = functools.partial(torch.cuda.synchronize, place) if place.type == "cuda" else None
    return NativeProblem(function, inputs, to_array, synchronize)


def _matrix_product(problem: GemmProblem, tensors: Mapping[str, torch.Tensor]) -> _Call:
    a, b = tensors["A"], tensors["B"]
    return torch.matmul, (a.t() if problem.a_transposed else a, b.t() if problem.b_transposed else b)


def _convolution(problem: ConvolutionProblem, tensors: Mapping[str, torch.Tensor]) -> _Call:
    function = functools.partial(
        torch.nn.functional.conv2d,
        stride=(problem.stride_height, problem.stride_width),
        padding=(problem.pad_height, problem.pad_width),
    )
    return function, (tensors["X"], tensors["W"])


def _recurrent_layer(problem: RecurrentProblem, tensors: Mapping[str, torch.Tensor]) -> _Call:
    x = tensors["X"]
    size = problem.hidden_size
    # The module lays its weights out as cuDNN wants them: in one piece.
    layer = _LAYERS[problem.cell](size, size, dtype=x.dtype, device=x.device)
    weights = [getattr(layer, f"{name}_l0").detach() for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]
    for own, given in zip(weights, (tensors["W"], tensors["R"], tensors["B"][0], tensors["B"][1]), strict=True):
        own.copy_(given)
    zeros = x.new_zeros(1, problem.batch_size, size)
    state: Any = (zeros, zeros) if problem.cell == "lstm" else zeros
    run = _FUNCTIONS[problem.cell]
    layers, is_training = 1, False

    def recurrent_layer(x: torch.Tensor, *weights: torch.Tensor) -> torch.Tensor:
        states: torch.Tensor = run(x, state, weights, True, layers, 0.0, is_training, False, False)[0]
        return states

    return recurrent_layer, (x, *weights)


_MAKERS: dict[type[Problem], Callable[[Any, Mapping[str, torch.Tensor]], _Call]] = {
    GemmProblem: _matrix_product,
    ConvolutionProblem: _convolution,
    RecurrentProblem: _recurrent_layer,
}

_LAYERS: dict[str, Callable[..., torch.nn.RNNBase]] = {
    "vanilla": functools.partial(torch.nn.RNN, nonlinearity="relu"),
    "lstm": torch.nn.LSTM,
    "gru": torch.nn.GRU,
}

_FUNCTIONS: dict[str, Callable[..., Any]] = {"vanilla": torch.rnn_relu, "lstm": torch.lstm, "gru": torch.gru}
