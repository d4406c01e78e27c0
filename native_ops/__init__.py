"""Native operators: the headers that an operator's author includes, and the sources of operators that come along."""
