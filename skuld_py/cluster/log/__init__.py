"""The coordination log: its entries and commands, and the replica that every member builds by playing it."""
