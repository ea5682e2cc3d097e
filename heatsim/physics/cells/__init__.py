"""Cell types and the links between cells."""
