"""The rules of the reverse pass, one file an operator family; they are found by :mod:`..rule_table`."""
