//! Limits of clients and of the whole process: connections, request rates, descriptors, memory.

mod client_key;
mod clients;
mod descriptors;
mod exhausted;
mod memory;
mod rates;
mod shards;
mod shared;
mod slots;

pub(crate) use client_key::ClientKey;
pub(crate) use clients::{ConnectionLimiter, Permit};
pub(crate) use descriptors::{Descriptor, Descriptors, Kind, Open, spare};
pub(crate) use exhausted::{EXHAUSTED, Exhausted};
pub(crate) use memory::Memory;
pub(crate) use rates::Rate;
pub(crate) use shared::SharedLimits;
pub(crate) use slots::{Slot, Slots};
