"""Who may lead a partition: the states of an election, what was promised, whose memory is in doubt."""
