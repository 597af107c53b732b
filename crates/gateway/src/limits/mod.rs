//! Limits of clients and of the whole process: connections, request rates, descriptors, memory.

mod client_key;
mod clients;
mod descriptors;
mod exhausted;
mod memory;
mod rates;
mod server_connections;
mod shards;
mod state;

pub(crate) use client_key::ClientKey;
pub(crate) use clients::{ConnectionLimiter, Permit};
pub(crate) use descriptors::{Descriptor, Descriptors, Kind, Open, spare};
pub(crate) use exhausted::{EXHAUSTED, Exhausted};
pub(crate) use memory::Memory;
pub(crate) use rates::Rate;
pub(crate) use server_connections::{Slot, Slots};
pub(crate) use state::SharedLimits;
