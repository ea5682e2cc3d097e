"""One run over several processes, called ranks: messages between them, and what to do when one of them fails."""
