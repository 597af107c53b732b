//! What a user types, and what comes back: the command line, its exit code, its first lines.

mod commands;
mod cost;
mod documented;
mod evidence;
mod found;
mod load;
mod serve;
mod stacks;
mod streams;
