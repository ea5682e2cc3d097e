"""The data of rows at due times."""
