"""Beginnings of names of columns in energy.csv, before the name of a region, contact, surface or source."""

# The names of heats that the balance of the body does not add up. The heat through the surface of a region towards void
# is a part of that through all of them.
REGION, CONTACT, SURFACE = PARTS = "region ", "contact ", "surface "
# The heat flows of sources in a steady state.
SOURCE = "source "
