"""The coordination plane, pure: for now, placement. The log and its replica come to live here."""
