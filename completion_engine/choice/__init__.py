"""Which model the target `auto` is: the facts, past passes, and the price of a larger one."""
