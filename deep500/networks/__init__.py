"""Level 1: networks. ONNX models, their losses, and the contract of the executors that run them."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
