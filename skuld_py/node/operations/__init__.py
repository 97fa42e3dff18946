"""What all questions of a node to several nodes share: operations, whom they ask, and when they are called."""
