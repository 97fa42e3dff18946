"""The nouns: ids, tasks, documents, messages, events and effects. Frozen values, no time, no I/O."""
