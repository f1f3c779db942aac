"""AnyFlow-FAR: video of bounded length from flow maps over a causal context."""
