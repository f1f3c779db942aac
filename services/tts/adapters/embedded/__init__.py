"""The embedded voices: English by hibari, Chinese and mixed text by Kokoro, both on the CPU."""
