"""Freezing parameters."""

from __future__ import annotations

import fnmatch

from deep500.core.errors import InvalidInputError, InvalidNetworkError, near_miss
from deep500.networks.network import Network
from deep500.networks.tensor_roles import ROLE_KEY, TensorRole
from deep500.networks.transformation import Transformation

__all__ = ["Freezing"]


class Freezing(Transformation):
    """Turn parameters into constants, which are neither differentiated nor trained.

    The role is written in the network's metadata, so that a saved network stays frozen.
    """

    def __init__(self, *patterns: str) -> None:
        """Choose the parameters.

        Args:
            *patterns: Patterns of their names, with ``*`` and ``?``; by default all.

        Raises:
            InvalidInputError: A pattern is no text.
        """
        self.patterns = patterns or ("*",)
        for pattern in self.patterns:
            if not isinstance(pattern, str) or not pattern:
                raise InvalidInputError(f"A pattern was given as {pattern!r}; accepted are texts such as 'conv1.*'.")

    def check(self, network: Network) -> None:
        """Refuse patterns that match no parameter."""
        parameters = network.get_params()
        for pattern in self.patterns:
            if not fnmatch.filter(parameters, pattern):
                raise InvalidInputError(
                    f"No parameter of network {network.name!r} matches {pattern!r}.{near_miss(pattern, parameters)} "
                    f"Its parameters: {', '.join(parameters) or 'none'}."
                )

    def apply(self, network: Network) -> Network:
        """Return the network with the chosen parameters as constants."""
        result = network.detached()
        for name in self._chosen(network):
            result.model.graph.initializers[name].metadata_props[ROLE_KEY] = TensorRole.CONSTANT.value
        return result

    def check_result(self, network: Network, result: Network) -> None:
        """Also check that exactly the chosen parameters are constants."""
        super().check_result(network, result)
        chosen = set(self._chosen(network))
        if set(result.parameters) != set(network.parameters) - chosen or not chosen <= set(result.constants):
            raise InvalidNetworkError(f"{self.name} did not freeze exactly {', '.join(sorted(chosen))}.")

    def _chosen(self, network: Network) -> list[str]:
        return [n for n in network.parameters if any(fnmatch.fnmatchcase(n, pattern) for pattern in self.patterns)]
