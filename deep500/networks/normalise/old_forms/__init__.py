"""Old forms of operators, one file an operator: how they were written, and what says the same today."""
