"""The files of a run: their layout, how to write them so that they survive a crash, and how to read them."""
