"""Documents: reading, writing, schema and reference of scenarios."""
