"""What changes a body from outside, and how far a step may go."""
