"""Campaigns over machines, versions and test jobs: one record of what came of each, and what is learnt from many."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
