"""Upsample, which Resize replaced; the version converter takes it for another way of placing points."""

from __future__ import annotations

from deep500.networks.normalise.old_form import OldForm
from deep500.networks.normalise.old_forms._asymmetric import resize_asymmetrically

__all__ = ["UPSAMPLE"]

UPSAMPLE = (OldForm("Upsample", (1, 9), resize_asymmetrically),)
