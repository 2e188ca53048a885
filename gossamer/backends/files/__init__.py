"""Local files: blobs, JSON Lines output, and the development cache. No driver but the operating system."""
