"""Figures, scales, axes, legends and texts of pictures."""
