"""One inner form: rules that bring an operator to its newest form, one file an operator."""
