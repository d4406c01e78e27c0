"""One ``tf.function`` of an executor: a program for one purpose and inputs of one structure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import tensorflow as tf

from deep500.core.errors import InvalidInputError, InvalidNetworkError
from deep500.core.tensor_descriptor import TensorDescriptor
from deep500.core.value_descriptor import ValueDescriptor
from deep500.frameworks.tensorflow._dtypes import held_dtype, is_held, released_value
from deep500.frameworks.tensorflow._errors import explain_trace
from deep500.frameworks.tensorflow._flat_call import flat_call
from deep500.frameworks.tensorflow._known import Assumptions
from deep500.frameworks.tensorflow.translation import Translation
from deep500.networks.program import Program

__all__ = ["ParameterUpdate", "ProgramFunction", "flattened", "frozen", "input_structure"]

#: ``update(gradients, parameters)``, by name, assigns the parameters' next values; it is traced. One that has a method
#: ``numbers()`` is given as a third argument what that returns at each call: a float64 vector of one length. One that
#: returns gradients by name has these returned by the graph, in the place of those that it was given.
ParameterUpdate = Callable[..., Mapping[str, tf.Tensor] | None]

#: What a graph is traced for: of every input the shape (``None`` for a size of any value), a list of these for a
#: sequence, ``None`` for an optional that is absent.
Structure: TypeAlias = Any


def input_structure(program: Program, inputs: Sequence[Any], fixed: bool = False) -> Structure:
    """Return what is to be told apart of inputs: number and absence of values, ranks where they are not declared.

    Inputs without elements are told apart by their shapes: TensorFlow's kernels abort on some of them, so the lowerings
    have to know.

    Args:
        program: The program.
        inputs: What is fed.
        fixed: Whether all shapes are to be told apart.
    """
    fixed = fixed or any(tensor.shape.num_elements() == 0 for tensor in flattened(inputs))
    return tuple(_structure(value, kind, fixed) for value, kind in zip(inputs, program.input_types, strict=True))


def _structure(value: Any, kind: ValueDescriptor, fixed: bool) -> Structure:
    if value is None:
        return None
    element = kind if isinstance(kind, TensorDescriptor) else kind.element
    if isinstance(value, list):
        # An optional sequence is a sequence where it is there.
        inner = element if isinstance(kind, TensorDescriptor) else getattr(element, "element", element)
        return ["sequence", *(_structure(entry, inner, fixed) for entry in value)]
    if not isinstance(element, TensorDescriptor) or element.shape is None:
        return tuple(value.shape) if fixed else (None,) * value.shape.rank
    return tuple(value.shape) if fixed else tuple(d if isinstance(d, int) else None for d in element.shape)


def flattened(values: Any) -> Iterator[tf.Tensor]:
    """Yield the tensors of inputs, sequences and what is in them."""
    for value in values:
        if isinstance(value, (list, tuple)):
            yield from flattened(value)
        elif value is not None:
            yield value


def frozen(structure: Structure) -> Any:
    """Return a structure in a form that can be a key."""
    return tuple(frozen(entry) for entry in structure) if isinstance(structure, (list, tuple)) else structure


def _rebuilt(structure: Structure, tensors: Iterator[tf.Tensor]) -> Any:
    if structure is None:
        return None
    if isinstance(structure, list):
        return [_rebuilt(entry, tensors) for entry in structure[1:]]
    return next(tensors)


def _shapes(structure: Structure) -> Iterator[tuple[int | None, ...]]:
    if isinstance(structure, list):
        for entry in structure:
            yield from _shapes(entry)
    elif structure is not None and structure != "sequence":
        yield structure


class ProgramFunction:
    """One ``tf.function``: a program's outputs and, for a loss, its gradients and an update of the parameters.

    Attributes:
        program: The program.
        function: The function, of the tensors among the program's inputs, returning outputs and gradients.
        graph: Its graph.
        assumptions: The values of inputs for which the graph was traced.
    """

    def __init__(
        self,
        translation: Translation,
        variables: Mapping[str, tf.Variable],
        inputs: Sequence[Any],
        structure: Structure,
        output_types: Mapping[str, ValueDescriptor],
        device: str,
        loss: str | None,
        update: ParameterUpdate | None,
        compiled: bool = False,
    ) -> None:
        """Trace the function.

        Args:
            translation: The program's.
            variables: Parameters and states by name.
            inputs: What is fed first.
            structure: The structure of all inputs.
            output_types: What the network declares of the outputs, by name.
            device: TensorFlow's name of the device.
            loss: Name of the output to differentiate.
            update: Assigns the parameters' next values.
            compiled: Whether XLA compiles the function when it is called first, and for each new size of its inputs.
        """
        self.program = program = translation.program
        tensors = list(flattened(inputs))
        is_static = all(None not in shape for shape in _shapes(list(structure)))
        self.assumptions = Assumptions(tensors, is_static)
        self._narrow = [(i, output_types[n]) for i, n in enumerate(program.outputs) if _is_held(output_types.get(n))]

        self._numbers: Callable[[], Any] | None = getattr(update, "numbers", None)
        self._translation, self._variables, self._structure, self._device = translation, variables, structure, device
        self._loss, self._update = loss, update
        signature = _signature(program, structure)
        if self._numbers is not None:
            signature.append(tf.TensorSpec(self._numbers().shape, tf.float64))
        # Without the setting, TensorFlow would let XLA compile where its flags say so.
        self.function = tf.function(self._run, input_signature=signature, autograph=False, jit_compile=compiled or None)
        # Called directly, the only graph saves the search for one that fits the inputs.
        self._concrete = self.function.get_concrete_function()
        self._call = flat_call(self._concrete)
        self.graph: tf.Graph = self._concrete.graph

    def _run(self, *tensors: tf.Tensor) -> tuple[list[Any], list[tf.Tensor | None]]:
        """Return outputs and gradients, and update states and parameters; this is traced."""
        program, variables, loss = self.program, self._variables, self._loss
        numbers: tuple[tf.Tensor, ...] = ()
        if self._numbers is not None:
            tensors, numbers = tensors[:-1], tensors[-1:]
        gradients: list[tf.Tensor | None] = []
        remaining = iter(tensors)
        with tf.device(self._device), self.assumptions.tracing(tensors):
            with tf.GradientTape(watch_accessed_variables=False) as tape:
                trained = [variables[name] for name in program.parameters] if loss else []
                tape.watch(trained)
                values = self._translation.trace([_rebuilt(entry, remaining) for entry in self._structure], variables)
            for state, name in program.state_updates.items():
                variables[state].assign(values[name])
            if loss:
                with explain_trace(loss):
                    gradients = [_dense(g) for g in tape.gradient(values[loss], trained)]
            if self._update:
                named = {n: g for n, g in zip(program.parameters, gradients, strict=True) if g is not None}
                changed = self._update(named, {name: variables[name] for name in named}, *numbers)
                if changed is not None:
                    gradients = [changed.get(name) for name in program.parameters]
            return [values[name] for name in program.outputs], gradients

    @property
    def variables(self) -> list[tf.Variable]:
        """The variables that the function reads or assigns."""
        return list(self._concrete.graph.variables)

    def __call__(self, *tensors: tf.Tensor) -> tuple[list[Any], list[tf.Tensor | None]]:
        """Return outputs and gradients."""
        if self._numbers is not None:
            tensors = (*tensors, tf.constant(self._numbers()))
        outputs, gradients = self._call(*tensors)
        for index, kind in self._narrow:
            outputs[index] = released_value(outputs[index], kind)
        return outputs, gradients


def _signature(program: Program, structure: Structure) -> list[tf.TensorSpec]:
    specifications = []
    for name, kind, entry in zip(program.inputs, program.input_types, structure, strict=True):
        while not isinstance(kind, TensorDescriptor):
            kind = kind.element
        try:
            dtype = held_dtype(kind.dtype)
        except InvalidInputError as error:
            raise InvalidNetworkError(f"TensorFlow has no dtype for input {name!r}, {kind}.") from error
        specifications += [tf.TensorSpec(shape, dtype) for shape in _shapes(entry)]
    return specifications


def _is_held(kind: ValueDescriptor | None) -> bool:
    """Return whether elements of a declared kind are held in those of another one."""
    while kind is not None and not isinstance(kind, TensorDescriptor):
        kind = kind.element
    return kind is not None and is_held(kind.dtype)


def _dense(gradient: Any) -> tf.Tensor | None:
    """Return a gradient as a tensor; one of a few rows comes as tf.IndexedSlices."""
    return None if gradient is None else tf.convert_to_tensor(gradient)
