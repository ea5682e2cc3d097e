"""The operator: boundary faces, exchange, rates, limits and balances of cells."""
