"""Level 0: operators. The contract, and a library of NumPy operators with forward and backward."""
