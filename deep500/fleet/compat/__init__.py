"""Campaigns: does this combination of framework, versions, device and ranks work on these machines?"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
