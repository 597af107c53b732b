//! Connections on both sides: keep-alive, sharing, closing and aborting.

mod ends;
mod given_up;
mod half_close;
mod pipelining;
mod pool;
mod retry;
mod scripts;
