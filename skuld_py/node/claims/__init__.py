"""Claims on tasks: how they are granted, renewed and ended, how they lapse, and how they wait for work."""
