"""What users import: ``Client``. A client knows messages and their bytes, and nothing of a node."""
