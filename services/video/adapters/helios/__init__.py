"""Helios: video without end from a pyramid of resolutions and a short history."""
