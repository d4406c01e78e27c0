"""PyTorch's Muon, which takes matrices alone, together with its AdamW for everything else."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch

__all__ = ["MuonWithAdamW"]


class MuonWithAdamW(torch.optim.Optimizer):
    """Gives matrices to ``torch.optim.Muon`` and other parameters to ``torch.optim.AdamW``.

    Its groups hold the numbers of both: ``lr``, ``momentum`` and ``weight_decay`` of Muon; ``adam_ratio`` (of AdamW's
    ``lr`` to Muon's), ``betas`` and ``adam_eps`` of AdamW.
    """

    def __init__(self, groups: Iterable[dict[str, Any]], *, nesterov: bool, ns_steps: int, **numbers: Any) -> None:
        """Divide the parameters.

        Args:
            groups: Parameters, and numbers in which they differ.
            nesterov: Whether Muon's momentum looks ahead.
            ns_steps: Number of Muon's iterations.
            **numbers: Those that groups have unless they say otherwise.
        """
        super().__init__(groups, numbers)
        self._parts: list[tuple[Mapping[str, Any], torch.optim.Optimizer]] = []
        for group in self.param_groups:
            matrices = [parameter for parameter in group["params"] if parameter.ndim == 2]
            others = [parameter for parameter in group["params"] if parameter.ndim != 2]
            if matrices:
                self._parts.append((group, torch.optim.Muon(matrices, nesterov=nesterov, ns_steps=ns_steps)))
            if others:
                self._parts.append((group, torch.optim.AdamW(others)))
        for _, part in self._parts:
            part.state = self.state

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update all parameters."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group, part in self._parts:
            part.param_groups[0].update(
                {"lr": group["lr"], "weight_decay": group["weight_decay"], "momentum": group["momentum"]}
                if isinstance(part, torch.optim.Muon)
                else {
                    "lr": group["lr"] * group["adam_ratio"],
                    "weight_decay": group["weight_decay"],
                    "betas": group["betas"],
                    "eps": group["adam_eps"],
                }
            )
            part.step()
        return loss
