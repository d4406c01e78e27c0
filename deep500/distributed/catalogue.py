"""What distributed training finds by name: communicators and schemes, one file each."""

from __future__ import annotations

from deep500.core.registry import Registry

__all__ = ["COMMUNICATORS", "SCHEMES"]

#: Transports between ranks, ``deep500/distributed/communicators``, and those that are a framework's own, which its
#: adapter brings (``communicator.py``).
COMMUNICATORS = Registry("communicator", "deep500.distributed.communicators", adapters="deep500.frameworks")

#: Schemes of distributed training, ``deep500/distributed/schemes``.
SCHEMES = Registry("scheme", "deep500.distributed.schemes")
