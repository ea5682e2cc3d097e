"""What is where: shapes, painting, and the areas of surfaces."""
