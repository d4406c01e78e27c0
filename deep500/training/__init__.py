"""Level 2: training. Samplers, optimizers written once for every framework, the trainer, its events and metrics."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
