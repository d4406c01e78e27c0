"""The environment record: on what machine, with which software and in which state something was measured."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
