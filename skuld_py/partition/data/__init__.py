"""What one copy of a partition holds: bodies, histories, and the indexes that follow from them."""
