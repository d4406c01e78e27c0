"""The rules of the reverse pass, one file an operator family; ``rule_table`` finds them."""
