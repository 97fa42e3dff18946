"""Tasks that wait for others: the dependent's leader asks, the dependency's leader tells when that task has
ended."""
