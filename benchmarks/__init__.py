"""Measured comparisons with hand-written framework code, one file a claim."""
