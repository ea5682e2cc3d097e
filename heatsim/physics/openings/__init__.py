"""Where heat enters cells from elsewhere than from neighbouring cells."""
