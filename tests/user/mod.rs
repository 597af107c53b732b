//! The command line as users see it: arguments, exit codes, first lines of output.

mod cost;
mod documented;
mod evidence;
mod found;
mod load;
mod serve;
mod stacks;
mod streams;
