//! How connections on both sides are kept, shared, ended and given up.

mod ends;
mod given_up;
mod pipelining;
mod pool;
mod scripts;
