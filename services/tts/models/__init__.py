"""Model files that come whole from package registries: pinned, checked, fetched once."""
