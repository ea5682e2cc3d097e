"""What is read from a field: temperatures, fluxes, contacts, and the bound of the balance."""
