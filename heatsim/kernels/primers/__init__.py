"""Small stencils to learn from before the ladder: a moving sum, the smoothing of an image, two steps along a line."""
