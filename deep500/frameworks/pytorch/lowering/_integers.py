"""Integers that PyTorch has no kernels for: unsigned ones of 16 to 64 bits, computed in signed ones, exactly.

Sums, differences, products and bits of 64-bit integers are the same whether they are read as signed or unsigned, so
those of uint64 are computed in int64, and only order and division need care.

These functions look at dtypes; lowerings call them inside of what they record.
"""

from __future__ import annotations

import torch

__all__ = ["is_signed", "narrowed", "ordered", "remainder", "truncated_quotient", "unordered", "wider"]

_WIDER = {torch.uint16: torch.int32, torch.uint32: torch.int64}

#: The bit that makes an int64 negative, as an int64.
_TOP = -(2**63)


def is_signed(dtype: torch.dtype) -> bool:
    """Whether integers of a dtype may be negative."""
    return torch.iinfo(dtype).min < 0


def wider(x: torch.Tensor) -> torch.Tensor:
    """Return a tensor in a dtype that has kernels: its values, but of uint64 its bits as int64."""
    if x.dtype == torch.uint64:
        return x.view(torch.int64)
    return x.to(_WIDER[x.dtype]) if x.dtype in _WIDER else x


def narrowed(x: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Return what was computed from :func:`wider` tensors in their own dtype; higher bits are discarded."""
    return x.to(torch.int64).view(torch.uint64) if dtype == torch.uint64 else x.to(dtype)


def ordered(x: torch.Tensor) -> torch.Tensor:
    """Return a tensor in a dtype that has kernels, whose elements compare as those of the given one."""
    return x.view(torch.int64).bitwise_xor(_TOP) if x.dtype == torch.uint64 else wider(x)


def unordered(x: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Undo :func:`ordered`."""
    return x.bitwise_xor(_TOP).view(torch.uint64) if dtype == torch.uint64 else x.to(dtype)


def truncated_quotient(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return ``a / b`` of integers rounded towards zero, and 0 where ``b`` is 0, as NumPy does.

    The processor traps on dividing the least integer by -1, so that division is a negation, which wraps around.
    """
    dtype = a.dtype
    if dtype == torch.uint64:
        return _unsigned_quotient(wider(a), wider(b)).view(torch.uint64)
    negates = (b == -1) if is_signed(dtype) else torch.zeros_like(b, dtype=torch.bool)
    is_zero = b == 0
    a, b = wider(a), wider(b)
    quotient = torch.div(a, b.masked_fill(negates | is_zero, 1), rounding_mode="trunc")
    quotient = torch.where(negates, torch.neg(a), quotient)
    return narrowed(quotient * ~is_zero, dtype)


def remainder(a: torch.Tensor, b: torch.Tensor, *, truncates: bool) -> torch.Tensor:
    """Return what a division of integers leaves, and 0 where ``b`` is 0, as NumPy does.

    Args:
        a: The dividend, whose sign the result has if the quotient truncates.
        b: The divisor, whose sign the result has if the quotient is rounded down.
        truncates: Whether the quotient is rounded towards zero instead of down.
    """
    dtype = a.dtype
    quotient = wider(truncated_quotient(a, b))
    wide_a, wide_b = wider(a), wider(b)
    rest = (wide_a - quotient * wide_b) * (wide_b != 0)
    if not truncates and is_signed(dtype):
        rest = rest + wide_b * ((rest != 0) & ((rest < 0) != (wide_b < 0)))
    return narrowed(rest, dtype)


def _unsigned_quotient(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Divide the bits of uint64 held in int64: half of ``a`` first, which is not negative, and the last bit after.

    Source: H. S. Warren, "Hacker's Delight", 2nd edition, section 9-3.
    """
    is_large = b < 0  # at least 2**63: goes into a once or not at all
    safe = b.masked_fill(b <= 0, 1)
    quotient = torch.div((a >> 1) & ~_TOP, safe, rounding_mode="trunc") << 1
    rest = a - quotient * safe
    quotient = quotient + (rest.bitwise_xor(_TOP) >= safe.bitwise_xor(_TOP))
    once = a.bitwise_xor(_TOP) >= b.bitwise_xor(_TOP)
    return torch.where(is_large, once.to(torch.int64), quotient) * (b != 0)
