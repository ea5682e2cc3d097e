"""Due times, steps, stages and tolerances."""
