"""Sources of heat in the body, and beams."""
