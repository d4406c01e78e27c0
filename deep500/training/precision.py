"""The precision of a training: float32, or matrix products in 16 bits with parameters in float32."""

from __future__ import annotations

from deep500.core.errors import TrainingError, near_miss
from deep500.networks.network import Network
from deep500.networks.transformation import transform
from deep500.networks.transforms.mixed_precision import MixedPrecision
from deep500.training.loss_scaling import LossScaledOptimizer, with_scaled_losses
from deep500.training.optimizer import Optimizer

__all__ = ["PRECISIONS", "apply_precision", "precise_optimizer"]

#: What may be computed in.
PRECISIONS = ("float32", "bfloat16", "float16")


def apply_precision(network: Network, precision: str) -> Network:
    """Return a network that multiplies matrices in a precision; its parameters stay float32.

    For ``"float16"`` its losses get scaled ones beside them, since small gradients are 0 in float16; bfloat16 has
    float32's range and needs none.

    Args:
        network: The network, with its loss; it is not changed.
        precision: One of :data:`PRECISIONS`.

    Raises:
        TrainingError: There is no such precision.
        InvalidInputError: The network multiplies no matrices.
        InvalidNetworkError: It computes in 16 bits already, or has no loss to scale.
    """
    if _checked(precision) == "float32":
        return network
    result = transform(network, MixedPrecision(precision))
    return with_scaled_losses(result) if precision == "float16" else result


def precise_optimizer(optimizer: Optimizer, precision: str) -> Optimizer:
    """Return an optimizer as a precision needs it: with a scaled loss for float16, else itself.

    Args:
        optimizer: Made for an executor of what :func:`apply_precision` returned.
        precision: One of :data:`PRECISIONS`.

    Raises:
        TrainingError: There is no such precision, or the optimizer cannot skip a step, which float16 may need.
    """
    return LossScaledOptimizer(optimizer) if _checked(precision) == "float16" else optimizer


def _checked(precision: str) -> str:
    if precision not in PRECISIONS:
        raise TrainingError(
            f"The precision was given as {precision!r}.{near_miss(precision, PRECISIONS)} Accepted are "
            f"{', '.join(PRECISIONS)}."
        )
    return precision
