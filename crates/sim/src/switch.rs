//! Switches of protocols: upgrades of HTTP/1.1, WebSockets on streams, and the bytes that follow.

use crate::Invariant;
use crate::ledger::Ledger;
use crate::message::{ANSWER, pattern};
use crate::plan::Plan;

/// The bytes after a switch of protocols. Each side sends all of its bytes and ends its stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Switch {
    /// The protocol's name.
    pub(crate) protocol: &'static str,
    /// Bytes from the client.
    pub(crate) up: usize,
    /// Bytes from the origin.
    pub(crate) down: usize,
    pub(crate) order: Order,
    /// The client requests the switch on a stream, by extended CONNECT.
    pub(crate) is_on_stream: bool,
}

/// The order in which an origin sends its bytes and ends its stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// The origin sends its bytes and ends at once. If either side is an HTTP/2 stream, the origin's end closes the
    /// whole tunnel.
    AtOnce,
    /// The origin sends its bytes after the client has ended.
    Replies,
    /// The origin sends its bytes at once, and ends after the client.
    EndsLast,
}

impl Switch {
    /// A switch to the protocol of the plan; lengths in bytes. The client's length determines the order.
    pub(crate) fn new(plan: &Plan, up: usize, down: usize) -> Self {
        let orders = [Order::AtOnce, Order::Replies, Order::EndsLast];
        let (protocol, order) = match plan.http2 > 0 || plan.http2_servers {
            true => (WEBSOCKET, orders[up % 3]),
            false => (OTHER, orders[up % 2]),
        };
        Self { protocol, up, down, order, is_on_stream: false }
    }

    /// Whether the protocol is WebSocket, which also works on streams.
    pub(crate) fn is_websocket(self) -> bool {
        self.protocol == WEBSOCKET
    }

    /// The HTTP/1.1 request fields that ask for the switch. The key is 16 bytes in base64, different for each ID.
    pub(crate) fn fields(self, id: usize) -> Vec<(&'static str, String)> {
        let lengths = format!("{} {}", self.up, self.down);
        let mut fields = vec![
            ("X-Switch", lengths),
            ("Upgrade", self.protocol.to_owned()),
            ("Connection", "upgrade".to_owned()),
        ];
        if self.is_websocket() {
            fields.push((VERSION, "13".to_owned()));
            fields.push(("Sec-WebSocket-Key", format!("{id:021}A==")));
        }
        fields
    }

    /// Checks that a request asks an origin for this protocol. `asked` is the client's request, if any; `protocol` is
    /// the protocol in the received head, or empty.
    pub(crate) fn check(asked: Option<Self>, id: usize, protocol: &str, ledger: &mut Ledger) {
        let wanted = asked.map_or("", |switch| switch.protocol);
        if wanted != protocol {
            let what = format!("#{id} asks for {wanted:?}, and arrived for {protocol:?}");
            ledger.violation(Invariant::Bytes, what);
        }
    }

    /// Checks the bytes that an origin has received from the client when the stream ends cleanly. With `servers_end`,
    /// the whole tunnel closes when the origin closes its side, so with [`Order::AtOnce`] the client's last bytes may
    /// be missing.
    pub(crate) fn ends_at_origin(self, id: usize, got: &[u8], servers_end: bool, ledger: &mut Ledger) {
        let is_own = self.is_own(id, got, ledger);
        if let Some(entry) = ledger.entries.get_mut(id) {
            let may_be_cut = servers_end && self.order == Order::AtOnce;
            entry.is_passed_on = Some(is_own && (may_be_cut || got.len() == self.up));
        }
    }

    /// Checks that an origin has received a prefix of the client's bytes.
    pub(crate) fn is_own(self, id: usize, got: &[u8], ledger: &mut Ledger) -> bool {
        let is_own = pattern(id, self.up).starts_with(got);
        if !is_own {
            let what = format!("{} bytes of #{id} after the switch are not its own", got.len());
            ledger.violation(Invariant::Bytes, what);
        }
        is_own
    }

    /// The bytes from the origin.
    pub(crate) fn down(self, id: usize) -> Vec<u8> {
        pattern(id ^ ANSWER, self.down)
    }
}

/// The protocol's name on streams.
const WEBSOCKET: &str = "websocket";

/// The protocol's name in runs without streams.
const OTHER: &str = "sim";

/// The field with the protocol's version.
pub(crate) const VERSION: &str = "Sec-WebSocket-Version";

/// The field with the server's proof, only in HTTP/1.1.
pub(crate) const ACCEPT: &str = "Sec-WebSocket-Accept";
