//! Changes at run time, which the reload thread makes.

use super::{Admin, RELOAD, Response};
use crate::process::{Ask, Refusal};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};

impl Admin {
    /// Requests a change from the reload thread, and waits until the workers have applied it. `ask` creates the
    /// request; `what` names the change. The error is a response: why nothing has changed or, after a timeout, that the
    /// change continues.
    pub(super) fn apply(
        &self,
        what: &str,
        ask: impl FnOnce(Sender<Result<(), Refusal>>) -> Ask,
    ) -> Result<(), Response> {
        // The reload thread is busy during an upgrade, and the new process would not receive the change.
        self.upgrades.lasts().map_err(|why| Response::text(409, format!("{why}\n")))?;
        let (reply, outcome) = mpsc::channel();
        let is_asked = self.reload.as_ref().is_some_and(|thread| thread.send(ask(reply)).is_ok());
        let outcome =
            if is_asked { outcome.recv_timeout(RELOAD) } else { Err(RecvTimeoutError::Disconnected) };
        let (status, why) = match outcome {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(Refusal::Unknown(why))) => (404, why),
            Ok(Err(Refusal::Invalid(why))) => (400, why),
            Ok(Err(Refusal::Conflict(why))) => (409, why),
            Err(RecvTimeoutError::Timeout) => {
                (504, "the change continues; see the log for its outcome".to_owned())
            }
            Err(RecvTimeoutError::Disconnected) => (501, format!("this gateway does not change {what}")),
        };
        Err(Response::text(status, format!("{why}\n")))
    }
}
