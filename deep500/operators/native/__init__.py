"""Building C++ and CUDA operators, loading them, and calling them with NumPy arrays."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
