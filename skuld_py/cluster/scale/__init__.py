"""Options for clusters of thousands, all off by default: without any of them a member follows the plain log."""
