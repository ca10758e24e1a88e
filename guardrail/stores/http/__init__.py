"""HTTP APIs as stores."""
