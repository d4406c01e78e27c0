"""Attention. Every operator of the family is run by its definition."""

__all__: list[str] = []
