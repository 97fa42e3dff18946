"""How a partition gets its leader: elections, promises, the voters, and marks of a memory that is in doubt."""
