"""Live datastores: each answers questions from one read-only snapshot."""
