//! Heads that are refused, unless the listener or the service lets pass what is wrong with them.

use super::Worker;
use super::answers::Passed;
use crate::downstream::{Past, Phase};
use crate::keys::{ClientId, ExchangeId, ServiceId};
use crate::observe::By;
use crate::observe::access::HEAD_IN_LOG;
use crate::reason::Reason;
use weir_http1::{Limits, Mended, RequestError, RequestHead, ResponseError, ResponseHead, Rules};
use weir_reactor::Net;

impl<N: Net> Worker<N> {
    /// A client's `input` begins with a head that is refused for `error`: begins its request nevertheless if its listener lets
    /// that pass. Returns the head's length; 0 if it is not complete, or is refused.
    #[cold]
    pub(super) fn mend_request(&mut self, id: ClientId, input: &[u8], error: RequestError) -> usize {
        let Some(client) = self.clients.get_mut(id) else { return 0 };
        let (rules, limits) = (client.frontend.accept, client.frontend.limits);
        let mut mended = Vec::new();
        match self.core.request.mend(input, &limits, rules, error, &mut mended) {
            Ok(Some(Mended { length, broken })) => {
                let by = By::Listener(client.frontend.name.to_string());
                self.core.counters.accept(by, broken);
                self.begin(id, &mended, Past::default());
                length
            }
            Ok(None) => {
                client.phase = Phase::Head { started: true };
                0
            }
            Err(error) => {
                let rule = RequestHead::would_pass(input, &limits, rules, error);
                // For the logs.
                client.held = input[..input.len().min(HEAD_IN_LOG)].to_vec();
                self.end(id, Reason::BadRequest(error, rule));
                0
            }
        }
    }

    /// What a server answers begins with a head that is refused for `error`: passes it on nevertheless if the service lets that
    /// pass. Returns the head's length and what it led to; `None` if it is not complete.
    #[cold]
    pub(super) fn mend_answer(
        &mut self,
        id: ExchangeId,
        input: &[u8],
        error: ResponseError,
    ) -> Option<(usize, Passed)> {
        let exchange = self.exchanges.get(id)?;
        let (client, service, limits) = (exchange.client, exchange.service, exchange.limits);
        let mut mended = Vec::new();
        match self.mend_response(service, input, &limits, error, &mut mended) {
            Ok(length) => length.map(|length| (length, self.pass_head(id, &mended))),
            Err(error) => {
                let rule = ResponseHead::would_pass(input, &limits, self.rules_of(service), error);
                self.end(client, Reason::BadResponse(error, rule));
                Some((0, Passed::Ended))
            }
        }
    }

    /// Mends the head of an answer, which is refused for `error`, if the service lets that pass. Returns its length, if it is
    /// complete; it is written to `mended`. Errors: it does not, or there is more that is wrong.
    #[cold]
    pub(super) fn mend_response(
        &mut self,
        service: ServiceId,
        input: &[u8],
        limits: &Limits,
        error: ResponseError,
        mended: &mut Vec<u8>,
    ) -> Result<Option<usize>, ResponseError> {
        let rules = self.rules_of(service);
        let outcome = self.core.response.mend(input, limits, rules, error, mended)?;
        let Some(Mended { length, broken }) = outcome else { return Ok(None) };
        if let Some(service) = self.services.get(service) {
            self.core.counters.accept(By::Service(service.config.name.clone()), broken);
        }
        Ok(Some(length))
    }

    fn rules_of(&self, service: ServiceId) -> Rules {
        self.services.get(service).map_or(Rules::NONE, |service| service.config.accept)
    }
}
