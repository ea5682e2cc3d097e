"""How long a plan may time work."""

# Seconds for the steps of one method. Reading the initial field and compiling come before.
SECONDS = 0.4
LONGEST = 1.2  # s for the steps of a method, apart from the last batch, and from places in a long run of "euler"
