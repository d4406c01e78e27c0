"""Programs through ``torch.compile``, where that pays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import fx

from deep500.core.texts import message_of
from deep500.measure.clock import Stopwatch

__all__ = ["choose_form"]

#: Runs of each form by which it is decided; the quickest counts, since others were interrupted.
_TRIALS = 7

#: A compiled form has to be quicker than so much of the other's time to be taken.
_PAYS_BELOW = 0.98


def choose_form(module: fx.GraphModule, inputs: Sequence[Any], loss: int | None) -> tuple[Callable[..., Any], str]:
    """Compile a program, and return the form that runs it faster, compiled or not, with what was found.

    Args:
        module: The program.
        inputs: What it is run with; the decision is made for tensors of these sizes.
        loss: Number of the output that is differentiated; ``None`` where none is.
    """
    torch._dynamo.reset()  # what other networks specialised counts against a limit
    compiled = torch.compile(module)
    try:
        first = _timed(compiled, inputs, loss)
    except Exception as error:  # noqa: BLE001 - whatever the compiler meets, the network runs without it
        torch._dynamo.reset()
        return module, f"not compiled: {type(error).__name__}: {message_of(error)[:300]}"
    plain, fast = (min(_timed(form, inputs, loss) for _ in range(_TRIALS)) for form in (module, compiled))
    found = f"{1e3 * fast:.3g} ms compiled (in {first:.1f} s), {1e3 * plain:.3g} ms otherwise"
    if fast < _PAYS_BELOW * plain:
        return compiled, f"compiled: {found}"
    return module, f"compiling does not pay: {found}"


def _timed(function: Callable[..., Any], inputs: Sequence[Any], loss: int | None) -> float:
    """Return how long a run takes; the gradients of parameters that it makes are not kept."""
    watch = Stopwatch(_waiting(inputs))
    results = function(*inputs)
    if loss is not None and results[loss].requires_grad:
        parameters = [p for p in getattr(function, "parameters", list)() if p.requires_grad]
        torch.autograd.grad(results[loss], parameters, allow_unused=True)
    return watch.elapsed_s()


def _waiting(inputs: Sequence[Any]) -> Callable[[], None] | None:
    """Return what waits for the device of the inputs; ``None`` where a call returns when it is done."""
    return torch.cuda.synchronize if any(isinstance(x, torch.Tensor) and x.is_cuda for x in inputs) else None
