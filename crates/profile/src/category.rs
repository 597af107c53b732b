//! The categories of CPU time.

use serde::{Deserialize, Serialize};

/// What CPU time is spent on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Category {
    /// (EC)DHE, RSA key transport and KEMs.
    KeyExchange,
    /// Signing and verifying handshake messages.
    Signature,
    /// Elliptic curve or big number arithmetic whose callers do not show its purpose.
    ExchangeOrSignature,
    /// Parsing and verifying certificates and chains.
    CertificateVerification,
    /// Encrypting and decrypting records.
    RecordEncryption,
    /// Hashing, HMAC and the key schedule.
    Hashing,
    /// The rest of TLS: messages, states, sessions.
    Tls,
    /// Parsing, routing and writing HTTP.
    Http,
    /// Application code: JavaScript, Java, Python, a Go program's own packages.
    Application,
    /// The runtime of a language: JIT compilation, garbage collection, scheduling.
    Runtime,
    /// Allocating and freeing memory in user space.
    Allocation,
    /// Copying bytes, in user space and across its border.
    Copying,
    /// The kernel's TCP/IP and sockets.
    KernelTcp,
    /// Polling, sleeping and waking up.
    Polling,
    /// Entering and leaving the kernel.
    SystemCalls,
    /// Anything else in the kernel: memory, files, timers, interrupts.
    Kernel,
    /// The CPU's idle loop, in samples of a whole machine.
    Idle,
    /// No rule matches any frame of the stack.
    Unknown,
}

impl Category {
    /// All categories, in display order.
    pub const ALL: [Self; 18] = [
        Self::KeyExchange,
        Self::Signature,
        Self::ExchangeOrSignature,
        Self::CertificateVerification,
        Self::RecordEncryption,
        Self::Hashing,
        Self::Tls,
        Self::Http,
        Self::Application,
        Self::Runtime,
        Self::Allocation,
        Self::Copying,
        Self::KernelTcp,
        Self::Polling,
        Self::SystemCalls,
        Self::Kernel,
        Self::Idle,
        Self::Unknown,
    ];

    /// Its display name, at most 25 characters.
    pub fn words(self) -> &'static str {
        match self {
            Self::KeyExchange => "key exchange",
            Self::Signature => "signature",
            Self::ExchangeOrSignature => "key exchange or signature",
            Self::CertificateVerification => "certificate verification",
            Self::RecordEncryption => "record encryption",
            Self::Hashing => "hashing, key schedule",
            Self::Tls => "TLS state machine",
            Self::Http => "HTTP",
            Self::Application => "application",
            Self::Runtime => "JIT, garbage collection",
            Self::Allocation => "allocation",
            Self::Copying => "copying",
            Self::KernelTcp => "kernel TCP",
            Self::Polling => "polling and wake-ups",
            Self::SystemCalls => "system call entry",
            Self::Kernel => "kernel, other",
            Self::Idle => "idle",
            Self::Unknown => "unknown",
        }
    }

    /// Whether its functions serve purposes of several categories.
    pub(crate) fn is_primitive(self) -> bool {
        matches!(
            self,
            Self::ExchangeOrSignature | Self::RecordEncryption | Self::Hashing | Self::Tls | Self::Unknown
        )
    }

    /// The categories that take over if a caller belongs to one of them: a hash inside a signature is part of the
    /// signature, a signature inside a certificate chain part of its verification, and a lock of the library part of what
    /// takes it.
    pub fn yields_to(self) -> &'static [Self] {
        match self {
            Self::Signature => &[Self::CertificateVerification],
            Self::ExchangeOrSignature => &[Self::KeyExchange, Self::Signature, Self::CertificateVerification],
            Self::RecordEncryption => &[Self::KeyExchange, Self::Signature],
            Self::Hashing => {
                &[Self::KeyExchange, Self::Signature, Self::CertificateVerification, Self::RecordEncryption]
            }
            Self::Tls => &[
                Self::KeyExchange,
                Self::Signature,
                Self::CertificateVerification,
                Self::RecordEncryption,
                Self::Hashing,
            ],
            Self::Unknown => &[
                Self::KeyExchange,
                Self::Signature,
                Self::ExchangeOrSignature,
                Self::CertificateVerification,
                Self::RecordEncryption,
                Self::Hashing,
            ],
            Self::Kernel => &[Self::KernelTcp, Self::Polling],
            _ => &[],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fit_their_column_and_are_distinct() {
        let names: std::collections::BTreeSet<_> = Category::ALL.map(Category::words).into();
        assert_eq!(names.len(), Category::ALL.len());
        assert!(names.iter().all(|name| name.len() <= 25), "{names:?}");
    }

    #[test]
    fn no_two_categories_yield_to_each_other() {
        for one in Category::ALL {
            for other in one.yields_to() {
                assert!(!other.yields_to().contains(&one), "{one:?} and {other:?}");
            }
        }
    }
}
