//! Control frames: credit, settings, and frames without effect.

use super::H2Origin;
use super::behaviour::{Behaviour, Tunnels};
use crate::h2::wire::{ENABLE_CONNECT_PROTOCOL, INITIAL_WINDOW_SIZE, MAX_CONCURRENT_STREAMS};
use crate::ledger::Ledger;
use crate::world::World;
use std::time::Duration;
use weir_http2::frame::{self, Kind};

impl H2Origin {
    /// Sends a WINDOW_UPDATE for each credit that is due.
    pub(super) fn give_credit(&mut self, world: &mut World) {
        self.settle();
        for credit in self.credits.extract_if(.., |credit| credit.at <= world.now) {
            if credit.bytes > 0 {
                frame::write_window_update(credit.stream, credit.bytes, &mut self.out);
                self.wire.gives(credit.stream, credit.bytes);
            }
        }
    }

    /// Lowers the limit of streams once enough requests have arrived.
    pub(super) fn shrink(&mut self, world: &mut World, ledger: &mut Ledger) {
        if self.behaviour.shrinks_after.is_none_or(|after| self.requests < after) {
            return;
        }
        self.behaviour.shrinks_after = None;
        let most = 1 + world.below(3) as u32;
        ledger.note(|| format!("origin {} allows {most} streams", self.peer.link));
        self.settle();
        frame::write_settings([(MAX_CONCURRENT_STREAMS, most)].into_iter(), &mut self.out);
        self.limits.push(Some(most));
        self.wire.resizes(self.window);
    }

    /// Announces support for tunnels once enough requests have arrived.
    pub(super) fn take_tunnels(&mut self, ledger: &mut Ledger) {
        let Tunnels::TakenAfter(requests) = self.behaviour.tunnels else { return };
        if self.requests < requests || self.takes_tunnels_from.is_some() {
            return;
        }
        ledger.note(|| format!("origin {} takes tunnels", self.peer.link));
        self.settle();
        frame::write_settings([(ENABLE_CONNECT_PROTOCOL, 1)].into_iter(), &mut self.out);
        self.limits.push(self.limit());
        self.takes_tunnels_from = Some(self.limits.len());
        self.wire.resizes(self.window);
    }

    /// Sends a random frame that changes nothing, or only the windows.
    pub(super) fn say_without_effect(&mut self, world: &mut World) {
        if !self.behaviour.fidgets || self.streams.is_empty() || world.now < self.fidgets_again {
            return;
        }
        // The gateway tolerates any total number of such frames, but not many at once.
        self.fidgets_again = world.now + Duration::from_millis(100 + world.below(2000));
        self.settle();
        match world.below(4) {
            0 => frame::write_ping([7; 8], false, &mut self.out),
            1 => {
                let no = 1 + 2 * world.below(20) as u32;
                frame::write(Kind::Priority, 0, no, &[0, 0, 0, 0, 9], &mut self.out);
            }
            2 => frame::write(Kind::Unknown(0xfa), 0, 0, &[0; 7], &mut self.out),
            _ => {
                self.window = Behaviour::window(world);
                frame::write_settings([(INITIAL_WINDOW_SIZE, self.window)].into_iter(), &mut self.out);
                self.limits.push(self.limit());
                self.wire.resizes(self.window);
            }
        }
    }

    /// Appends the pending control frames, which must precede later frames.
    pub(super) fn settle(&mut self) {
        self.connection.settle(&mut self.out);
    }
}
