"""What an exchange among any number of ranks costs: message schedules, a clock per rank, closed forms, predictions."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
