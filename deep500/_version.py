"""The version of Deep500, in one place: the packaging metadata reads it from here."""

__version__ = "1.0.0a1"
