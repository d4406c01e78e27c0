"""Attaching a loss."""

from __future__ import annotations

from deep500.core.errors import InvalidInputError, InvalidNetworkError
from deep500.networks.loss import Loss
from deep500.networks.network import Network
from deep500.networks.transformation import Transformation

__all__ = ["LossAttaching"]


class LossAttaching(Transformation):
    """Append a loss, and the input for its label; see :meth:`deep500.networks.network.Network.append_loss`."""

    def __init__(
        self,
        loss: str | Loss = "SoftmaxCrossEntropyLoss",
        *,
        prediction: str | None = None,
        label: str = "label",
        name: str = "loss",
    ) -> None:
        """Choose the loss.

        Args:
            loss: A loss or its name.
            prediction: Name of the output to compare with the label; may be omitted when there is one output.
            label: Name of the label's input; it is added unless it exists.
            name: Name of the new output.
        """
        self.loss, self.prediction, self.label, self.loss_name = loss, prediction, label, name

    def check(self, network: Network) -> None:
        """Refuse a loss that the network has already."""
        if self.loss_name in network.losses:
            raise InvalidInputError(f"Network {network.name!r} has a loss named {self.loss_name!r} already.")

    def apply(self, network: Network) -> Network:
        """Return the network with the loss."""
        result = network.detached()
        result.append_loss(self.loss, prediction=self.prediction, label=self.label, name=self.loss_name)
        return result

    def check_result(self, network: Network, result: Network) -> None:
        """Check that all is as before but for the loss and its label."""
        added = set(result.inputs) - set(network.inputs)
        if result.outputs != network.outputs or not added <= {self.label} or set(network.inputs) - set(result.inputs):
            raise InvalidNetworkError(f"{self.name} changed more of network {network.name!r} than its losses.")
        if set(result.losses) != {*network.losses, self.loss_name}:
            raise InvalidNetworkError(f"{self.name} did not add exactly the loss {self.loss_name!r}.")
