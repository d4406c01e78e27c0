"""Formats of other tools that measurements are exported to, one file each."""
