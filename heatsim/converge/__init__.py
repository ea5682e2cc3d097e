"""The errors of a scenario's values, from the same run on other grids, with smaller steps and in float64."""
