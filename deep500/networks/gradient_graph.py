"""The gradient of a network as a network: operators of ONNX that compute it, whatever runs them.

The graph is differentiated into a graph (:mod:`deep500.networks.differentiation`). So a runtime that only infers can
train, and every framework's own differentiation has something to be checked against.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import onnx
import onnx.numpy_helper

from deep500.core.errors import InvalidInputError, near_miss
from deep500.core.tensor_descriptor import TensorDescriptor
from deep500.networks.differentiation.differentiate import differentiated, reached_inputs
from deep500.networks.loading import load_model
from deep500.networks.network import Network
from deep500.networks.program import Program
from deep500.networks.program_model import program_model
from deep500.networks.tensor_roles import ROLE_KEY, TensorRole

__all__ = ["gradient_model", "gradient_network"]


def gradient_network(
    network: Network, loss: str = "loss", shapes: Mapping[str, Sequence[int]] | None = None
) -> Network:
    """Return a network that computes the outputs of another one and the gradient of a loss by its parameters.

    Its inputs are those of the other network; its outputs are those of the other one, followed by one output
    ``<parameter>.grad`` for every parameter that the loss depends on. It is in the form (training or evaluation) that
    the other one is in now, and takes the sizes that the other one takes.

    Args:
        network: The network.
        loss: Name of a scalar output.
        shapes: Shapes of inputs, in place of what the network declares; what is known is computed once.

    Raises:
        InvalidInputError: A shape contradicts the network, or there is no such loss.
        InvalidNetworkError: What was computed is not valid.
        UnsupportedOperatorError: There is no rule for an operator between a parameter and the loss.
    """
    program = network.program(frozenset(network.inputs))
    if loss not in program.outputs:
        raise InvalidInputError(
            f"The network has no output named {loss!r}.{near_miss(loss, program.outputs)} "
            f"Its outputs: {', '.join(program.outputs)}."
        )
    model, _ = gradient_model(network, program, loss, _checked(program, shapes or {}))
    kept = {value.name for value in model.graph.input if value.name not in program.inputs}
    values = dict(zip(kept, network.fetch_tensors(list(kept))))
    declared = [value for value in model.graph.input if value.name not in kept]
    del model.graph.input[:]
    model.graph.input.extend(declared)
    model.graph.initializer.extend(onnx.numpy_helper.from_array(value, name) for name, value in values.items())
    derived = load_model(model)
    for name, value in derived.graph.initializers.items():
        is_trained, is_state = name in network.parameters, name in network.states
        role = TensorRole.PARAMETER if is_trained else TensorRole.STATE if is_state else TensorRole.CONSTANT
        value.metadata_props[ROLE_KEY] = role.value
    return Network(derived).as_declared()


def gradient_model(
    network: Network, program: Program, loss: str, shapes: Mapping[str, Sequence[int]] | None = None
) -> tuple[onnx.ModelProto, dict[str, str]]:
    """Return a model that computes a program's outputs and the gradient of one of them.

    Args:
        network: The network that the program is of.
        program: The program.
        loss: Name of the output that is differentiated; its elements are summed.
        shapes: Shapes of inputs, in place of what the network declares.

    Returns:
        A model whose inputs are those of the program, the parameters and the states, and whose outputs are those of
        the program, the next values of the states, and a gradient for every parameter that the loss needs; and the
        name of the gradient, ``<parameter>.grad`` unless something has it already, by parameter.

    Raises:
        UnsupportedOperatorError: There is no rule for an operator between a parameter and the loss.
    """
    constants = dict(zip(program.constants, network.fetch_tensors(list(program.constants))))
    model = program_model(network, program, stored=constants, shapes=shapes or None)
    reached = reached_inputs(model, program.parameters, loss)
    if not reached:
        return model, {}
    return differentiated(model, reached, loss, f"Network {network.name!r}")


def _checked(program: Program, given: Mapping[str, Sequence[int]]) -> dict[str, tuple[int, ...]]:
    types = dict(zip(program.inputs, program.input_types))
    shapes = {}
    for name, shape in given.items():
        if name not in types:
            raise InvalidInputError(
                f"The network has no input named {name!r}.{near_miss(name, types)} Its inputs: {', '.join(types)}."
            )
        descriptor, sizes = types[name], tuple(shape)
        if not isinstance(descriptor, TensorDescriptor) or not descriptor.accepts_shape(sizes):
            raise InvalidInputError(f"The shape of input {name!r} was given as {sizes}; accepted is {descriptor}.")
        shapes[name] = sizes
    return shapes
