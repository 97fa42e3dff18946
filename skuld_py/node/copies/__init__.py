"""How copies become and stay alike: when they are compared, and data on its way to other nodes."""
