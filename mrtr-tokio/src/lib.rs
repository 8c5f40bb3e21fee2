//! Drives mrtr-core from tokio.
