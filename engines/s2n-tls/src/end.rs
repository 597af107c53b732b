//! s2n-tls as a stack: configurations and sessions.

use weir_engine::{Connection, Error, Facts, Operate, Primitive, Resumption, Stack, pem};
use weir_engine_s2n_policy::Chosen;

use crate::s2n;

/// The library.
pub(crate) struct S2n;

impl Stack for S2n {
    type Client = s2n::Config;
    type Server = s2n::Config;

    fn facts(&self) -> Facts {
        weir_engine_aws_lc_rs::facts(weir_engine::built!())
    }

    fn client(&self, connection: &Connection) -> Result<s2n::Config, Error> {
        choose(connection)?;
        // A client without tickets would not read those that the server still sends.
        let tickets = connection.tickets > 0;
        let keeps = connection.resumption != Resumption::None;
        s2n::Config::client(&pem::text("ca", &connection.ca)?, tickets, keeps)
    }

    fn server(&self, connection: &Connection) -> Result<s2n::Config, Error> {
        choose(connection)?;
        pem::check_leaf(&connection.chain, connection.certificate)?;
        let (chain, key) = (pem::text("chain", &connection.chain)?, pem::text("key", &connection.key)?);
        s2n::Config::server(&chain, &key, connection.tickets as u8, connection.record as u16)
    }

    fn operation(&self, primitive: &Primitive) -> Result<Box<dyn Operate>, Error> {
        weir_engine_aws_lc_rs::operation(primitive)
    }
}

/// One suite, group and signature for all configurations of this run.
fn choose(connection: &Connection) -> Result<(), Error> {
    if connection.locks {
        return Err(Error::scenario(
            "locks `time`: the library does not expose its locks: expected no such key",
        ));
    }
    let chosen = Chosen {
        suite: connection.suite_code(),
        group: connection.group.code(),
        certificate_curve: connection.certificate_curve().unwrap_or(0),
        signature: connection.certificate.signature(),
    };
    if weir_engine_s2n_policy::choose(chosen) {
        Ok(())
    } else {
        Err(Error::stack("policy", "it has not all of these"))
    }
}
