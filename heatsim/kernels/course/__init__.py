"""The ladder as a course: six exercises, and how an answer is checked without a GPU."""
