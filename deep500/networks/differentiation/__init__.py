"""Graphs differentiated into graphs: the reverse pass, and one rule an operator."""
