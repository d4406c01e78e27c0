"""Random streams: one Philox stream a purpose, all derived from one seed.

Every random choice of a run (a parameter's initial values, the order of an epoch's samples, an augmentation) draws
from a stream of its own, named for what it serves. Thus adding a layer changes no other layer's weights, and no
framework's generator is involved, so that every framework starts from the same bits.

Source: J. K. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC11 (Philox); NumPy's ``SeedSequence``
spawn keys.
"""

from __future__ import annotations

import hashlib

import numpy as np

from deep500.core.errors import InvalidInputError

__all__ = ["check_seed", "random_stream"]


def check_seed(seed: int) -> int:
    """Return the seed as an ``int``.

    Raises:
        InvalidInputError: The seed is not a whole number from 0 to 2**64 - 1.
    """
    if isinstance(seed, (bool, np.bool_)) or not isinstance(seed, (int, np.integer)) or not 0 <= seed < 2**64:
        raise InvalidInputError(f"The seed {seed!r} is not accepted. Accepted are whole numbers from 0 to 2**64 - 1.")
    return int(seed)


def random_stream(seed: int, *names: str | int) -> np.random.Generator:
    """Return the generator of one purpose.

    Args:
        seed: The run's seed, from 0 to 2**64 - 1.
        *names: What the stream is for, for example ``"parameter", "conv1.weight"`` or ``"sampler", "train", 3``.

    Returns:
        A generator over NumPy's Philox whose key depends on the seed and on the names, and on nothing else.

    Raises:
        InvalidInputError: The seed is out of range, or a name is neither a text nor a whole number.
    """
    digest = hashlib.sha256("".join(map(_unambiguous, names)).encode()).digest()
    spawn_key = tuple(int.from_bytes(digest[i : i + 4], "little") for i in range(0, 16, 4))
    return np.random.Generator(np.random.Philox(np.random.SeedSequence(check_seed(seed), spawn_key=spawn_key)))


def _unambiguous(name: str | int) -> str:
    """Prefix a name with type and length, so that ("ab", "c") and ("a", "bc") differ, as do 1 and "1"."""
    if isinstance(name, str):
        kind, text = "str", str.__str__(name)
    elif isinstance(name, (int, np.integer)) and not isinstance(name, bool):
        kind, text = "int", str(int(name))
    else:
        raise InvalidInputError(f"{name!r} cannot name a random stream. Accepted are texts and whole numbers.")
    return f"{kind}{len(text)}:{text}"
