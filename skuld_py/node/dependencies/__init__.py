"""Tasks that wait for others: a dependent's leader asks, and its dependency's leader tells when that has ended."""
