//! A crypto backend without ML-KEM.

use weir_engine::{Error, Operate};

pub(crate) fn client(_: Box<dyn Operate>) -> Result<Box<dyn Operate>, Error> {
    Err(Error::scenario("operation: this stack has no ML-KEM: expected `x25519` or `p256`"))
}

pub(crate) use client as server;
