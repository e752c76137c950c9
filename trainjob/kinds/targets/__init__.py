"""What is learned of a row, and how an answer looks."""
