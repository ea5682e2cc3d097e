"""Rates, limits and balances of cells and surfaces."""
