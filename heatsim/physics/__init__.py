"""Heat conduction in a box: from a scenario's parameters to the numbers that the kernels consume."""
