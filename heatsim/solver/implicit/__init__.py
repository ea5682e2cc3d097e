"""The method "implicit": steps whose stages are solutions of systems of equations, by multigrid."""
