"""Claims on tasks: how they are granted, renewed, ended, and lapse."""
