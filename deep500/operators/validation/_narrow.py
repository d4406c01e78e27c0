"""Gradients in the floats that were given, against those of the same operator in wider floats."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from deep500.operators.operator import Array, OptionalArray
from deep500.operators.validation._problem import Problem, wide_gradient, widened, worst_of
from deep500.operators.validation.comparison import largest_size
from deep500.operators.validation.contract import first_not_finite
from deep500.operators.validation.differences import element_scales
from deep500.operators.validation.variants import backward_error, coarsest

__all__ = ["check_narrow"]


def check_narrow(
    problem: Problem,
    given: Sequence[OptionalArray],
    outputs: Sequence[Array],
    grads: Sequence[OptionalArray],
    found: Sequence[OptionalArray],
) -> list[str]:
    """Return what is wrong about the gradients in the floats that were given.

    Args:
        problem: The operator in wider floats, whose gradients were found right.
        given: Its inputs in the floats that were given.
        outputs: Its outputs for them.
        grads: Gradients by the outputs.
        found: The gradients by the inputs that backward returned for them.
    """
    wanted = problem.backward(widened(grads, problem.outputs))
    largest = max((largest_size(g) for g in grads if g is not None), default=0.0)
    terms = max((largest_size(problem.outputs[j]) for j in problem.through), default=0.0)
    failures = []
    for i in problem.by:
        x = given[i]
        assert x is not None
        gradient, exact = wide_gradient(found[i], x), wide_gradient(wanted[i], x)
        place = first_not_finite(gradient)
        if place is not None:
            failures.append(
                f"{problem.name}.backward returned {gradient[place]} in {x.dtype.name} as gradient by input {i} at "
                f"{list(place)}; in {problem.dtype} it is {exact[place]:.9g}."
            )
            continue
        if not x.size:
            continue
        # In the unit of the outputs, whose sizes, and those of the derivatives, stand for the size of the terms.
        scales = element_scales(x)
        dtype = coarsest([x, *(outputs[j] for j in problem.through)])
        allowed = backward_error(dtype, problem.length) * max(largest_size(exact * scales), largest * terms) / scales
        if problem.tolerance is not None:
            allowed = problem.tolerance.absolute + problem.tolerance.relative * np.abs(exact) + allowed
        error = np.abs(gradient - exact)
        if (error <= allowed).all():
            continue
        worst = np.unravel_index(worst_of(error, np.broadcast_to(allowed, error.shape)), error.shape)
        failures.append(
            f"The gradient of {problem.name} by input {i} is right in {problem.dtype} and wrong in {x.dtype.name}: "
            f"{int((error > allowed).sum())} of {x.size} elements differ by more than allowed, most of all "
            f"{[int(k) for k in worst]}: it is {gradient[worst]:.9g}, should be {exact[worst]:.9g}, and may differ by "
            f"{allowed[worst]:.3g}."
        )
    return failures
