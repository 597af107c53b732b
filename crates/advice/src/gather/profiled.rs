//! Facts from a profile: the share of each category.

use crate::fact::Facts;
use weir_profile::{Category, Profile};

/// The categories that occur only in handshakes.
const HANDSHAKE: [Category; 4] = [
    Category::KeyExchange,
    Category::Signature,
    Category::ExchangeOrSignature,
    Category::CertificateVerification,
];

impl Facts {
    /// Adds `share.CATEGORY` and `inclusive.CATEGORY`, 0 to 1. `is_own_load`: the process was sampled under its
    /// existing load.
    pub fn add_profile(&mut self, profile: &Profile, is_own_load: bool) {
        let source = format!("profile, {} samples", profile.samples);
        for one in &profile.categories {
            let name = one.category.words().replace([',', ' '], "-").replace("--", "-");
            self.add(&format!("share.{name}"), one.own.share, &source);
            self.add(&format!("inclusive.{name}"), one.inclusive.share, &source);
        }
        let handshake: f64 = HANDSHAKE.iter().map(|category| profile.own(*category).share).sum();
        self.add("share.handshake", handshake, &source);
        self.add("profile.own_load", is_own_load, &source);
    }
}
