"""What the adapters of diffusers pipelines share: loading, prompts, latents, checks."""
