"""The temperatures at edges and corners of surfaces, by local problems on finer cells."""
