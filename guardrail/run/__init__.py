"""One run: from opening to verdict."""
