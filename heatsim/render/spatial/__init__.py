"""Pictures of fields in space."""
