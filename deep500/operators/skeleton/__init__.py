"""The files that an author starts from: an operator that works, and its tests, to be replaced bit by bit."""
