"""The nouns: ids, tasks, settings, documents, messages, events, effects; and the store port. No clock, no I/O."""
