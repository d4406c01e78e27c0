"""Do executors agree? Whole networks, every tensor between, every node alone; and which node is the first to differ."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
