"""What was planted in a generated trace, as a picture."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["truth_figure"]


def truth_figure(truth: Mapping[str, Any]) -> Figure:
    r"""Draw, for each way to end and each GPU type, :math:`e^{-(t / s)^k}` with the planted scale and marginal shape.

    Args:
        truth: What :func:`deep500.fleet.trace.generating.generate_trace` returns. Its times are in hours.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10.0, 4.0), layout="constrained")
    scales = [scale for cause in ("failed", "passed") for scale in truth[cause]["scale_h"].values()]
    hours = np.geomspace(min(scales) / 30, max(scales) * 10, 200)
    for axis, cause in zip(figure.subplots(1, 2, sharey=True), ("failed", "passed")):
        planted = truth[cause]
        for name, scale in planted["scale_h"].items():
            left = np.exp(-((hours / scale) ** planted["marginal"]["shape"][name]))
            axis.plot(hours, left, label=f"{name}, scale {scale:g} h")
        axis.set(xscale="log", xlabel="hours", ylim=(0, 1), title=f"not yet {cause}, were it alone")
        axis.grid(alpha=0.3)
        axis.legend(fontsize=8, frameon=False)
    figure.axes[0].set_ylabel("share of tasks")
    return figure
