"""Level 2, data: the contract of a data set, and the data sets that can be loaded by name."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
