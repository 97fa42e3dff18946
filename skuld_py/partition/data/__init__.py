"""What one copy of a partition holds: bodies, histories, indexes that follow from them, and its hash tree."""
