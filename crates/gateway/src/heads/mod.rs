//! Message heads that the gateway writes, for forwarded messages and for its own responses.

pub(crate) mod client_address;
pub(crate) mod date;
mod elements;
pub(crate) mod forwarded;
pub(crate) mod ids;
pub(crate) mod imitations;
pub(crate) mod lookup;
pub(crate) mod max_forwards;
pub(crate) mod own;
pub(crate) mod rewrite;
pub(crate) mod set_cookie;
pub(crate) mod websocket;
pub(crate) mod writer;
