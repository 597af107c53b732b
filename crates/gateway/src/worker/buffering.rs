//! Requests that are held until their body has come, so that slow clients occupy no connection to a server.

use super::Worker;
use crate::downstream::{Buffered, Past, Phase};
use crate::keys::ClientId;
use crate::plan::Plan;
use crate::reason::Reason;
use std::rc::Rc;
use weir_http1::BodyDecoder;
use weir_reactor::Net;

impl<N: Net> Worker<N> {
    /// Holds the request whose head was parsed from `buf` until all of its body is here, or as much as its route says.
    #[cold]
    pub(super) fn buffer(&mut self, id: ClientId, buf: &[u8], plan: &Rc<Plan>, route: usize) {
        if self.core.is_short {
            return self.refuse(id, buf, Reason::NoMemory, plan.snapshot.routes.get(route));
        }
        let Some(client) = self.clients.get_mut(id) else { return };
        let policy = plan.policy_of(route);
        let core = &mut self.core;
        if core.request.expect_continue {
            client.transport.stage(&mut core.wire).extend_from_slice(b"HTTP/1.1 100 Continue\r\n\r\n");
        }
        let decoder = BodyDecoder::new(core.request.framing, &client.frontend.limits);
        client.buffered = Some(Box::new(Buffered {
            head: buf.to_vec(),
            body: Vec::new(),
            decoder,
            most: policy.request_buffer,
            max_body: policy.max_body,
            passed: 0,
        }));
        client.tempo.get_or_insert_default().held_to = Some((Rc::clone(plan), Some(route)));
        client.phase = Phase::Buffering;
        client.moved = true;
        self.touch_client(id);
    }

    /// Takes the part of the body that `input` begins with, and passes the request on once that is due. Returns its length.
    #[cold]
    pub(super) fn buffer_body(&mut self, id: ClientId, input: &[u8]) -> usize {
        let Some(client) = self.clients.get_mut(id) else { return 0 };
        let Some(buffered) = &mut client.buffered else {
            self.broken(id, "a body without its request");
            return 0;
        };
        client.moved = true;
        let taken = match buffered.take(input) {
            Ok(taken) => taken,
            Err(error) => {
                self.end(id, Reason::BadRequestBody(error));
                return 0;
            }
        };
        if buffered.passed > buffered.max_body {
            self.end(id, Reason::BodyTooLarge);
        } else if buffered.is_due() {
            self.pass_buffered(id);
        }
        taken
    }

    fn pass_buffered(&mut self, id: ClientId) {
        let Some(client) = self.clients.get_mut(id) else { return };
        let Some(buffered) = client.buffered.take() else { return };
        let Buffered { head, mut body, .. } = *buffered;
        client.phase = Phase::Head { started: false };
        self.begin_held(id, &head, Past { buffered: true, ..Past::default() });
        let taken = self.take_some(id, &mut body, 0);
        if let Some(client) = self.clients.get_mut(id)
            && client.phase != Phase::Closing
        {
            client.held.extend_from_slice(&body[taken..]);
        }
    }
}
