"""Video adapters: one module a model, small, with its capabilities as data."""
