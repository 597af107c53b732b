//! Whole-program tests: real processes, real sockets, real peers. They form one program, linked once, with a module per
//! subject. All tests share its process, so they must not change its environment, working directory or signal handlers.

#![allow(clippy::print_stdout)]

mod common;
mod servers;

mod advise;
mod bad_input;
mod bodies;
mod calibrate;
mod connections;
mod deploy;
mod doctor;
mod drain;
mod duets;
mod experiments;
mod faults;
mod gateway;
mod generated;
mod heads;
mod heavy;
mod http2;
mod http2_experiments;
mod kill;
mod load_agreement;
mod load_bad_input;
mod load_faults;
mod load_mixed;
mod load_requests;
mod load_resumption;
mod load_times;
mod log;
mod modes;
mod network;
mod network_runs;
mod outbound;
mod pairings;
mod peers;
mod probe;
mod profile;
mod refusals;
mod results;
mod rules;
mod smuggling;
mod stacks;
mod targets;
mod targets_peers;
mod timeouts;
mod tunnels;
mod tutorial;
mod user;
