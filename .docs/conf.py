"""The pages of the checkout as a website: `python -m sphinx -W -c .docs . outputs/docs`."""

project = "heatsim"
author = "heatsim contributors"
copyright = "2026, heatsim contributors"
extensions = ["myst_parser"]
root_doc = "README"
include_patterns = ["README.md", "scenarios/**", "heatsim/**"]
exclude_patterns = ["**/__pycache__"]
myst_heading_anchors = 4
suppress_warnings = ["toc.not_included"]  # the README links to all pages
html_theme = "alabaster"
