//! The HTTP pass-through gateway.
