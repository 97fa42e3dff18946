"""Options for clusters of thousands, all off by default; and a member's slots, which are no option."""
