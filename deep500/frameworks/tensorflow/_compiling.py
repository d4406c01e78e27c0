"""Programs through XLA, where that pays."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence

import tensorflow as tf

from deep500.core.texts import message_of
from deep500.frameworks.tensorflow._function import ProgramFunction
from deep500.measure.clock import Stopwatch

__all__ = ["choose_form"]

#: Runs of each form by which it is decided; the quickest counts, since others were interrupted.
_TRIALS = 7

#: A compiled form has to be quicker than so much of the other's time to be taken.
_PAYS_BELOW = 0.98

#: Operations that call Python, which XLA cannot; they may have effects, so that they are not tried either.
_HOST_OPERATIONS = ("EagerPyFunc", "PyFunc", "PyFuncStateless")


def choose_form(
    plain: ProgramFunction,
    compile_it: Callable[[], ProgramFunction],
    inputs: Sequence[tf.Tensor],
    wait: Callable[[], None],
) -> tuple[ProgramFunction, str]:
    """Compile a program, and return the form that runs it faster, compiled or not, with what was found.

    Variables that a run assigns have the same values afterwards as before.

    Args:
        plain: The program, not compiled.
        compile_it: Traces it to be compiled.
        inputs: What it is run with; the decision is made for tensors of these sizes.
        wait: Waits for the device.
    """
    reason = _obstacle(plain)
    if reason is not None:
        return plain, f"not compiled: {reason}"
    with _unchanged_variables(plain):
        try:
            compiled = compile_it()
            first = _timed(compiled, inputs, wait)
        except Exception as error:  # noqa: BLE001 - whatever XLA meets, the network runs without it
            return plain, f"not compiled: {type(error).__name__}: {message_of(error)[:300]}"
        # In turn, so that what else the machine does meets both alike.
        times = [[_timed(form, inputs, wait) for form in (plain, compiled)] for _ in range(_TRIALS)]
        slow, fast = (min(column) for column in zip(*times, strict=True))
    found = f"{1e3 * fast:.3g} ms compiled (in {first:.1f} s), {1e3 * slow:.3g} ms otherwise"
    if fast < _PAYS_BELOW * slow:
        return compiled, f"compiled: {found}"
    return plain, f"compiling does not pay: {found}"


def _obstacle(function: ProgramFunction) -> str | None:
    """Return why a program is not to be compiled, before it is tried; ``None`` where nothing is known against it."""
    kinds = set(_kinds_of_operations(function.graph))
    for kind in _HOST_OPERATIONS:
        if kind in kinds:
            return "an operator of the network runs in Python, which XLA cannot call"
    if any(kind.startswith(("Rng", "Random", "Multinomial", "ParameterizedTruncatedNormal")) for kind in kinds):
        return "the network draws random numbers, and XLA need not draw those that TensorFlow draws without it"
    return None


def _kinds_of_operations(graph: tf.Graph) -> Iterator[str]:
    """Yield the types of a graph's operations and of those in the bodies of its loops and branches."""
    definition = graph.as_graph_def()
    yield from (node.op for node in definition.node)
    for function in definition.library.function:
        yield from (node.op for node in function.node_def)


@contextlib.contextmanager
def _unchanged_variables(function: ProgramFunction) -> Iterator[None]:
    """Give the variables of a function, an optimizer's own among them, their values back."""
    variables = function.variables
    values = [variable.read_value() for variable in variables]
    try:
        yield
    finally:
        for variable, value in zip(variables, values, strict=True):
            variable.assign(value)


def _timed(function: ProgramFunction, inputs: Sequence[tf.Tensor], wait: Callable[[], None]) -> float:
    """Return how long a run takes."""
    watch = Stopwatch(wait)
    function(*inputs)
    return watch.elapsed_s()
