"""Two small stencils to learn from before the ladder: a moving sum along a line, and the smoothing of an image."""
