//! Request heads that the parser rejects and the listener's `accept` rules allow.

use super::Worker;
use crate::downstream::Phase;
use crate::exchange::Leg;
use crate::keys::ClientId;
use crate::observe::By;
use crate::observe::access::HEAD_IN_LOG;
use crate::reason::Reason;
use weir_http1::{Repaired, RequestError, RequestHead};
use weir_reactor::Net;

impl<N: Net> Worker<N> {
    /// Begins the exchange of the head at the start of `input`, which the parser rejected with `error`, if the
    /// listener's rules allow that error. Returns the head's length; 0 if the head is incomplete or rejected.
    #[cold]
    pub(super) fn recover_request(&mut self, id: ClientId, input: &[u8], error: RequestError) -> usize {
        let Some(client) = self.clients.present_mut(id) else { return 0 };
        let (rules, limits) = (client.frontend.accept, client.frontend.limits);
        let mut repaired = Vec::new();
        match self.core.request.repair(input, &limits, rules, error, &mut repaired) {
            Ok(Some(Repaired { length, broken })) => {
                let by = By::Listener(client.frontend.name.to_string());
                self.core.counters.accept(by, broken);
                self.begin(Leg { client: id, stream: None }, &repaired, None);
                length
            }
            Ok(None) => {
                client.phase = Phase::Head { started: true };
                0
            }
            Err(error) => {
                let rule = RequestHead::would_pass(input, &limits, rules, error);
                // `end` logs these bytes as the request's head.
                client.held = input[..input.len().min(HEAD_IN_LOG)].to_vec();
                self.end(id, Reason::BadRequest(error, rule));
                0
            }
        }
    }
}
