"""Tasks that wait for others: the leaders of the ones ask, the leaders of the others tell."""
