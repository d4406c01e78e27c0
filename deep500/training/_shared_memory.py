"""Memory that processes share, without a name, so that it is gone when the last of them ends, however it ends."""

from __future__ import annotations

import mmap
import os
import tempfile

from deep500.core.errors import DatasetError

__all__ = ["SharedMemory", "aligned"]

#: Arrays begin at multiples of this, a cache line and the widest vector register.
_ALIGNMENT = 64


def aligned(size_bytes: int) -> int:
    """Return the next multiple of 64 bytes."""
    return -(-size_bytes // _ALIGNMENT) * _ALIGNMENT


class SharedMemory:
    """A piece of memory behind a file descriptor that can be sent to another process.

    Attributes:
        descriptor: The file descriptor; closed by :meth:`close_descriptor`, which leaves the memory mapped.
        memory: The mapped memory. It stays mapped as long as an array over it lives.
    """

    def __init__(self, descriptor: int, size_bytes: int, *, copy_on_write: bool = False) -> None:
        """Map what a descriptor stands for.

        Args:
            descriptor: From :meth:`create`, here or in another process.
            size_bytes: Its size.
            copy_on_write: Whether what is written here stays here.
        """
        self.descriptor = descriptor
        self.memory = mmap.mmap(descriptor, size_bytes, access=mmap.ACCESS_COPY if copy_on_write else mmap.ACCESS_WRITE)

    @classmethod
    def create(cls, size_bytes: int) -> SharedMemory:
        """Reserve memory, at least one page.

        Raises:
            DatasetError: There is not as much.
        """
        size_bytes = -(-max(1, size_bytes) // mmap.PAGESIZE) * mmap.PAGESIZE
        descriptor = _anonymous_file()
        try:
            if hasattr(os, "posix_fallocate"):  # else a lack of memory would be a SIGBUS at the first write
                os.posix_fallocate(descriptor, 0, size_bytes)
            else:
                os.truncate(descriptor, size_bytes)
            return cls(descriptor, size_bytes)
        except OSError as error:
            os.close(descriptor)
            raise DatasetError(
                f"{size_bytes} bytes of memory to share with the workers of an input pipeline cannot be had "
                f"({error.strerror}). Use a smaller prefetch, smaller minibatches, or kind='thread'."
            ) from error

    def close_descriptor(self) -> None:
        """Close the descriptor; the memory stays mapped here, and where it was sent."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1


def _anonymous_file() -> int:
    if hasattr(os, "memfd_create"):
        return os.memfd_create("deep500-input")
    descriptor, path = tempfile.mkstemp(prefix="deep500-input-")
    os.unlink(path)
    return descriptor
