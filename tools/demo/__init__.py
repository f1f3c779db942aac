"""The demonstration that `make demo` runs: real services, a real client, files to listen to."""
