"""Traces of clusters: when jobs succeed or fail, and what goes with it."""
