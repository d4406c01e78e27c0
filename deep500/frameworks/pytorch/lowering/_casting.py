"""Conversion between element types, those of 8 and fewer bits included, by what ONNX says of Cast.

Source: ONNX Cast-28.
"""

from __future__ import annotations

import torch

from deep500.frameworks.pytorch._dtypes import HELD_AS, torch_dtype

__all__ = ["cast", "is_small_float", "values"]

#: Bits of the fraction, least exponent, greatest number, and bits of the infinities and of NaN of floats of 8 bits.
_FLOAT8 = {
    "float8_e4m3fn": (3, -6, 448.0, 0x7F, 0x7F),
    "float8_e4m3fnuz": (3, -7, 240.0, 0x80, 0x80),
    "float8_e5m2": (2, -14, 57344.0, 0x7C, 0x7F),
    "float8_e5m2fnuz": (2, -15, 57344.0, 0x80, 0x80),
}

#: Numbers that the lower three bits of float4_e2m1fn stand for; the fourth is the sign.
_FLOAT4 = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)

_SCALE = "float8_e8m0fnu"


def is_small_float(name: str | None) -> bool:
    """Whether an element type is a float of 8 bits or fewer."""
    return name is not None and (name.startswith("float8") or name == "float4_e2m1fn")


def values(x: torch.Tensor, name: str | None) -> torch.Tensor:
    """Return what a tensor holds in a dtype that has kernels: small floats as float32, all else as it is.

    Args:
        x: The tensor.
        name: Its element type; ``None`` for what its dtype says.
    """
    if name == "float4_e2m1fn":
        table = torch.tensor([*_FLOAT4, *(-v for v in _FLOAT4)], dtype=torch.float32, device=x.device)
        return table[x.to(torch.int64)]
    return x.to(torch.float32) if x.dtype.is_floating_point and x.dtype.itemsize == 1 else x


def cast(
    x: torch.Tensor, source: str | None, target: str, saturate: bool = True, round_mode: str = "up"
) -> torch.Tensor:
    """Return a tensor in another element type.

    Args:
        x: The tensor.
        source: Its element type; ``None`` for what its dtype says.
        target: The element type wanted.
        saturate: Whether what is too large for a float of 8 bits becomes its greatest number, instead of infinite or,
            where that does not exist, not a number.
        round_mode: ``"up"``, ``"down"`` or ``"nearest"``, for float8_e8m0fnu.
    """
    x = values(x, source)
    if target in _FLOAT8:
        return _to_float8(x, target, saturate)
    if target == "float4_e2m1fn":
        return _to_float4(x)
    if target == _SCALE:
        return _to_scale(x, saturate, round_mode)
    if target in HELD_AS:
        bits = int(target[-1])
        kept = x.to(torch.int64) & ((1 << bits) - 1)
        sign = 0 if target.startswith("u") else 1 << (bits - 1)
        return (kept.bitwise_xor(sign) - sign).to(HELD_AS[target])
    return x.to(torch_dtype(target))


def _rounded(x: torch.Tensor, fraction_bits: int, least_exponent: int) -> torch.Tensor:
    """Return float64 numbers rounded to so many bits, of two equally near ones to the even one.

    Scaling by powers of two is exact, so that nothing is rounded twice.
    """
    near = torch.clamp(x, -(2.0**20), 2.0**20)  # far beyond what any of the small types holds
    exponent = torch.frexp(near).exponent.to(torch.int64) - 1
    step = torch.clamp(exponent, min=least_exponent) - fraction_bits
    rounded = torch.round(near * _power_of_two(-step)) * _power_of_two(step)
    return torch.where(torch.isinf(x), x, rounded)


def _power_of_two(exponent: torch.Tensor) -> torch.Tensor:
    """Return ``2**exponent`` as float64, put together from its bits: no kernel promises that its power is exact."""
    return ((exponent + 1023) << 52).view(torch.float64)


def _to_float8(x: torch.Tensor, target: str, saturate: bool) -> torch.Tensor:
    fraction_bits, least_exponent, most, infinite, nan = _FLOAT8[target]
    rounded = _rounded(x.to(torch.float64), fraction_bits, least_exponent)
    clamped = torch.clamp(rounded, -most, most)
    if target.endswith("uz"):
        clamped = clamped + 0.0  # there is no -0, whose bits are those of NaN
    bits = clamped.nan_to_num(0.0).to(torch.float32).to(torch_dtype(target)).view(torch.uint8)
    sign = torch.signbit(rounded).to(torch.uint8) << 7
    if not saturate:
        bits = torch.where(rounded.abs() > most, infinite | sign, bits)
    return torch.where(torch.isnan(rounded), nan | sign, bits).view(torch_dtype(target))


def _to_float4(x: torch.Tensor) -> torch.Tensor:
    """Return the bits of float4_e2m1fn, which knows no infinity, and no NaN: -0 stands for it."""
    wide = x.to(torch.float64)
    rounded = _rounded(wide, 1, 0).abs()
    table = torch.tensor(_FLOAT4, dtype=torch.float64, device=x.device)
    code = torch.bucketize(rounded.clamp(max=6.0).nan_to_num(0.0), table).to(torch.uint8)
    is_negative = torch.signbit(wide) | torch.isnan(wide)
    return code | (is_negative.to(torch.uint8) << 3)


def _to_scale(x: torch.Tensor, saturate: bool, round_mode: str) -> torch.Tensor:
    """Return powers of two between ``2**-127`` and ``2**127``: their exponent plus 127 is what float8_e8m0fnu holds."""
    wide = x.to(torch.float64).abs()
    fraction, exponent = torch.frexp(wide)  # of x = fraction * 2**exponent, with a fraction from 1/2 on, below 1
    threshold = {"up": 0.5, "nearest": 0.75, "down": 1.0}[round_mode]
    goes_up = (fraction > threshold) if round_mode == "up" else (fraction >= threshold)
    power = torch.where(torch.isinf(wide), 128, exponent - 1 + goes_up.to(exponent.dtype))
    power = torch.where(wide == 0, -128, power)
    code = power.clamp(-127, 127) + 127
    if not saturate:
        code = torch.where((power < -127) | (power > 127), 255, code)
    return torch.where(torch.isnan(wide), 255, code).to(torch.uint8).view(torch_dtype(_SCALE))
