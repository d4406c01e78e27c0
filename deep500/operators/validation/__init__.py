"""Is an operator right? Its values against a reference, its gradients against differences, it against another one."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
