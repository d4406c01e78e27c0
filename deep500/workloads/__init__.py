"""Kinds of workloads that can be measured: one file a kind, found by name."""
