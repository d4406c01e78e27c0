"""Native operators: the headers that an operator's author includes, and operators in C++ and CUDA that come along.

Each operator is a folder with one class of Python, the code for processors (``.h``, ``.cpp``) and that for NVIDIA's
GPUs (``.cu``). It is compiled when it is first used, and runs on NumPy arrays and, by ``custom_op``, on every
framework's tensors. ``docs/native_ops.md`` lists them.

Example:
    >>> import numpy as np
    >>> from native_ops import IPow
    >>> IPow(power=2)(np.array([1.0, 3.0]))
    array([1., 9.])
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
