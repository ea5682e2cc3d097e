"""The heat that has passed surfaces and come from sources."""
