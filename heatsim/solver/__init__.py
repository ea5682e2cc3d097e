"""Methods that advance or solve for the field."""
