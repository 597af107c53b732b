//! Tests of signatures with known nonces against AWS-LC and RFC 6979, of the arithmetic against slow arithmetic, and of
//! faults.

use std::string::String;
use std::vec::Vec;
use std::{eprintln, format};

use aws_lc_rs::agreement::{ECDH_P256, PrivateKey};
use aws_lc_rs::digest::{Digest, SHA256, SHA512, digest};
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey};
use proptest::prelude::*;

use super::base::STEPS;
use super::faults::{self, Place};
use super::inverse::inverses;
use super::modular::to_element;
use super::modular::{Modulus, N, P};
use super::nonce::{Hedge, modulo_n};
use super::self_test::{EXPECTED, VECTORS, self_test, vector};
use super::table::TABLE;
use super::words::{Words, ZERO, from_be, minus, plus, to_be};
use super::{SigningKey, field, signature, words};
use crate::Ifma;
use crate::lanes::Lanes;
use crate::simd::{Simd, kernel};

fn ifma() -> Option<Ifma> {
    let detected = Ifma::detect();
    if let Err(missing) = detected {
        eprintln!("skipped: {missing}");
    }
    detected.ok()
}

fn hex(digits: &str) -> [u8; 32] {
    core::array::from_fn(|i| u8::from_str_radix(&digits[2 * i..2 * i + 2], 16).unwrap())
}

/// Numbers from 1 to n - 1: small ones, powers of two, runs of ones, numbers around 2^256 - n, the number of [`halves`]
/// for which lanes of the comb have equal sums, and n minus each of these.
fn edges() -> Vec<Words> {
    let mut edges = Vec::new();
    let less = |a: &Words| minus(&N.words, a).0;
    edges.extend((1..40).map(|small| [small, 0, 0, 0]));
    for bit in 0..256 {
        let mut power = ZERO;
        power[bit / 64] = 1 << (bit % 64);
        edges.push(power);
        edges.push(minus(&power, &[1, 0, 0, 0]).0);
        edges.push(minus(&ZERO, &power).0);
    }
    let one = N.one;
    edges.extend([one, plus(&one, &[1, 0, 0, 0]).0, minus(&one, &[1, 0, 0, 0]).0]);
    edges.push(halves());
    let opposites: Vec<_> = edges.iter().map(less).collect();
    edges.extend(opposites);
    edges.retain(|k| minus(k, &N.words).1 == 1 && *k != ZERO);
    edges.push([less(&ZERO)[0] - 1, N.words[1], N.words[2], N.words[3]]);
    edges
}

/// n - 2 (n modulo 2^130).
fn halves() -> Words {
    let low = [N.words[0], N.words[1], N.words[2] & 3, 0];
    minus(&minus(&N.words, &low).0, &low).0
}

fn aws_public(scalar: &[u8; 32]) -> [u8; 65] {
    let key = PrivateKey::from_private_key(&ECDH_P256, scalar).unwrap();
    key.compute_public_key().unwrap().as_ref().try_into().unwrap()
}

#[track_caller]
fn assert_verifies(public: &[u8; 65], digest: &[u8; 32], signature: &[u8; 64]) {
    let digest = Digest::import_less_safe(digest, &SHA256).unwrap();
    UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, public).verify_digest(&digest, signature).unwrap();
}

/// Compares r with that of an independent multiplication, and s with the signature equation.
#[track_caller]
fn assert_signature(key: &[u8; 32], digest: &[u8; 32], nonce: &Words, signature: Option<[u8; 64]>) {
    let signature = signature.unwrap_or_else(|| panic!("no signature with {nonce:x?}"));
    let x: [u8; 32] = aws_public(&to_be(nonce))[1..33].try_into().unwrap();
    assert_eq!(signature[..32], to_be(&N.reduced(&from_be(&x))), "r of {nonce:x?}");
    assert_verifies(&aws_public(key), digest, &signature);
}

#[test]
fn signatures_with_nonces_at_the_edges() {
    let Some(token) = ifma() else { return };
    let key = hex("C9AFA9D845BA75166B5C215767B1D6934E50C3DB36E89B127B8A622B120F6721");
    let signing = SigningKey::new(token, &key).unwrap();
    for nonce in edges() {
        assert_signature(&key, &[7; 32], &nonce, signature(token, &signing, &[7; 32], &nonce));
    }
}

#[test]
fn signatures_with_keys_and_digests_at_the_edges() {
    let Some(token) = ifma() else { return };
    let digests =
        [[0; 32], [0xff; 32], to_be(&N.words), to_be(&minus(&N.words, &[1, 0, 0, 0]).0), to_be(&P.words)];
    for scalar in edges() {
        let key = to_be(&scalar);
        let signing = SigningKey::new(token, &key).unwrap();
        assert_eq!(signing.public(), aws_public(&key), "{scalar:x?}");
        let nonce = [5, 6, 7, 8];
        for digest in &digests {
            assert_signature(&key, digest, &nonce, signature(token, &signing, digest, &nonce));
        }
    }
}

#[test]
fn keys_outside_1_to_n_minus_1_are_rejected() {
    let Some(token) = ifma() else { return };
    for scalar in [ZERO, N.words, plus(&N.words, &[1, 0, 0, 0]).0, [u64::MAX; 4]] {
        assert!(SigningKey::new(token, &to_be(&scalar)).is_none());
    }
}

#[test]
fn a_nonce_of_zero_has_no_signature() {
    let Some(token) = ifma() else { return };
    let key = SigningKey::new(token, &[1; 32]).unwrap();
    assert_eq!(signature(token, &key, &[7; 32], &ZERO), None);
}

/// RFC 6979, appendix A.2.5: digest, k, r and s. ECDSA uses the first 32 bytes of SHA-512's digests.
#[test]
fn the_vectors_of_rfc_6979() {
    let Some(token) = ifma() else { return };
    let key = hex("C9AFA9D845BA75166B5C215767B1D6934E50C3DB36E89B127B8A622B120F6721");
    let key = SigningKey::new(token, &key).unwrap();
    let public = [
        hex("60FED4BA255A9D31C961EB74C6356D68C049B8923B61FA6CE669622E60F29FB6"),
        hex("7903FE1008B8BC99A41AE9E95628BC64F2F1B20C2D7E9F5177A3C294D4462299"),
    ];
    assert_eq!(key.public()[1..], public.concat());
    let vectors = [
        (
            digest(&SHA256, b"sample"),
            "A6E3C57DD01ABE90086538398355DD4C3B17AA873382B0F24D6129493D8AAD60",
            "EFD48B2AACB6A8FD1140DD9CD45E81D69D2C877B56AAF991C34D0EA84EAF3716",
            "F7CB1C942D657C41D436C7A1B6E29F65F3E900DBB9AFF4064DC4AB2F843ACDA8",
        ),
        (
            digest(&SHA256, b"test"),
            "D16B6AE827F17175E040871A1C7EC3500192C4C92677336EC2537ACAEE0008E0",
            "F1ABB023518351CD71D881567B1EA663ED3EFCF6C5132B354F28D3B0B7D38367",
            "019F4113742A2B14BD25926B49C649155F267E60D3814B4C0CC84250E46F0083",
        ),
        (
            digest(&SHA512, b"sample"),
            "5FA81C63109BADB88C1F367B47DA606DA28CAD69AA22C4FE6AD7DF73A7173AA5",
            "8496A60B5E9B47C825488827E0495B0E3FA109EC4568FD3F8D1097678EB97F00",
            "2362AB1ADBE2B8ADF9CB9EDAB740EA6049C028114F2460F96554F61FAE3302FE",
        ),
    ];
    for (digest, k, r, s) in vectors {
        let digest = digest.as_ref()[..32].try_into().unwrap();
        let expected = [hex(r), hex(s)].concat().try_into().unwrap();
        assert_eq!(signature(token, &key, &digest, &from_be(&hex(k))), Some(expected));
    }
}

#[test]
fn the_self_tests_signatures_verify() {
    let Some(token) = ifma() else { return };
    let mut all = aws_lc_rs::digest::Context::new(&SHA256);
    for number in 0..VECTORS {
        let (key, digest, random) = vector(token, number);
        let key = key.unwrap();
        let signed = key.sign(&digest, &random);
        assert_signature(&to_be(&key.scalar), &digest, &key.hedge.nonce(&random, &digest), signed);
        all.update(&signed.unwrap());
    }
    assert_eq!(all.finish().as_ref(), EXPECTED, "the constant of the self-test");
    assert_eq!(self_test(token), Ok(()));
}

#[test]
fn nonces_are_sha_512_of_key_random_bytes_and_digest_modulo_n() {
    let (key, random, message) = ([2; 32], [1; 64], [3; 32]);
    let hash = digest(&SHA512, &[&key[..], &[0; 96], &random, &message].concat());
    let expected = modulo_n(hash.as_ref().try_into().unwrap());
    assert_eq!(*Hedge::new(&key).nonce(&random, &message), expected);
    assert_eq!(modulo_n(&[0; 64]), ZERO);
    // 2^512 - 1.
    assert_eq!(modulo_n(&[0xff; 64]), N.difference(&N.square, &[1, 0, 0, 0]));
}

#[test]
fn the_table_has_the_base_points_multiples() {
    for (step, entries) in TABLE.0.iter().enumerate() {
        for (i, entry) in entries.iter().enumerate() {
            for lane in 0..4 {
                let mut scalar = [2 * i as u64 + 1, 0, 0, 0];
                for _ in 0..5 * (STEPS * lane + step) {
                    scalar = N.sum(&scalar, &scalar);
                }
                let public = aws_public(&to_be(&scalar));
                let expected = [1, 33].map(|at| {
                    let coordinate = from_be(public[at..at + 32].try_into().unwrap());
                    words::limbs(&to_element(&P.scaled(&coordinate)))
                });
                let found = entry.map(|coordinate| coordinate.map(|limb| limb[lane]));
                assert_eq!(found, expected, "step {step}, entry {i}, lane {lane}");
            }
        }
    }
}

fn places() -> Vec<(Place, u32)> {
    let words = [
        Place::Nonce,
        Place::Copy,
        Place::InverseOfZ,
        Place::InverseOfNonce,
        Place::R,
        Place::S,
        Place::Key,
        Place::Digest,
    ];
    let elements = [Place::X, Place::Y, Place::Z, Place::Affine];
    let entries = (0..STEPS).map(Place::Entry);
    let elements = elements.into_iter().chain(entries).map(|place| (place, 260));
    words.map(|place| (place, 256)).into_iter().chain(elements).collect()
}

/// Fault attacks on unchecked signatures reveal the key (I. Biehl, B. Meyer and V. Müller, 2000).
#[test]
fn no_signature_leaves_with_any_flipped_bit() {
    let Some(token) = ifma() else { return };
    let (key, digest) = ([0x5a; 32], [7; 32]);
    let key = SigningKey::new(token, &key).unwrap();
    let nonce = [0x1234_5678_9abc_def1, 6, 7, 8];
    let whole = || signature(token, &key, &digest, &nonce);
    assert!(whole().is_some());
    for (place, bits) in places() {
        for bit in 0..bits {
            assert_eq!(faults::with(place, bit, whole), None, "bit {bit} of {place:?}");
        }
    }
    assert!(whole().is_some());
}

fn any_words() -> impl Strategy<Value = Words> {
    let word = || prop_oneof![3 => any::<u64>(), 1 => Just(0), 1 => Just(u64::MAX)];
    [word(), word(), word(), word()]
}

/// a b modulo the modulus by doublings and additions.
fn slow_product(modulus: &Modulus, a: &Words, b: &Words) -> Words {
    (0..256).rev().fold(ZERO, |sum, bit| {
        let double = modulus.sum(&sum, &sum);
        if a[bit / 64] >> (bit % 64) & 1 == 1 { modulus.sum(&double, b) } else { double }
    })
}

fn lanes_of(token: Ifma, words: &[Words; 4]) -> [Simd; 5] {
    let limbs = words.map(|lane| words::limbs(&lane));
    core::array::from_fn(|i| Simd::load(token, limbs.map(|lane| lane[i])))
}

fn words_of(element: &[Simd; 5]) -> [Words; 4] {
    let limbs = element.map(Simd::store);
    core::array::from_fn(|lane| words::from_limbs(&core::array::from_fn(|i| limbs[i][lane])))
}

kernel! {
    fn field_operations(a: &[Words; 4], b: &[Words; 4]) -> [[Words; 4]; 3] = field_operations_of;
}

/// a b, a a and a - b.
#[inline(always)]
fn field_operations_of(token: Ifma, a: &[Words; 4], b: &[Words; 4]) -> [[Words; 4]; 3] {
    let (a, b) = (lanes_of(token, a), lanes_of(token, b));
    let results = [field::mul(token, &a, &b), field::square(token, &a), field::difference(token, &a, &b)];
    results.map(|element| words_of(&field::plain(token, &element)))
}

proptest! {
    #[test]
    fn products_are_those_of_doublings_and_additions(a in any_words(), b in any_words()) {
        for modulus in [N, P] {
            let b = modulus.reduced(&b);
            prop_assert_eq!(modulus.product(&modulus.scaled(&a), &b), slow_product(&modulus, &a, &b));
            prop_assert_eq!(modulus.wide(&a, &b), modulus.sum(&slow_product(&modulus, &a, &modulus.one), &b));
            let c = modulus.reduced(&a);
            prop_assert_eq!(modulus.sum(&modulus.difference(&c, &b), &b), c);
        }
    }

    #[test]
    fn the_fields_lanes_compute_as_words_do(a in any_words(), b in any_words(), c in any_words()) {
        let Some(token) = ifma() else { return Ok(()) };
        let (left, right) = ([a, b, c, a], [b, c, a, a]);
        let [products, squares, differences] = field_operations(token, &left, &right);
        for lane in 0..4 {
            let (a, b) = (P.reduced(&left[lane]), P.reduced(&right[lane]));
            // An element is its number times 2^260, which is 2^4 times the Montgomery form, so divide by 2^4 to compare
            // the two.
            let plain = |words: &Words| from_element(&P.reduced(words));
            let (x, y) = (plain(&a), plain(&b));
            prop_assert_eq!(P.reduced(&products[lane]), slow_product(&P, &x, &y));
            prop_assert_eq!(P.reduced(&squares[lane]), slow_product(&P, &x, &x));
            prop_assert_eq!(P.reduced(&differences[lane]), P.difference(&x, &y));
        }
    }

    #[test]
    fn inverses_times_their_numbers_are_one(a in any_words(), b in any_words()) {
        let (a, b) = (P.reduced(&a), N.reduced(&b));
        let [x, y] = inverses(&a, &b);
        let product = |modulus: &Modulus, a: &Words, x: &Words| slow_product(modulus, a, x);
        prop_assert_eq!(product(&P, &a, &x), [u64::from(a != ZERO), 0, 0, 0]);
        prop_assert_eq!(product(&N, &b, &y), [u64::from(b != ZERO), 0, 0, 0]);
    }

    #[test]
    fn any_nonce_signs_any_digest_with_any_key(k in any_words(), d in any_words(), digest in any_words()) {
        let Some(token) = ifma() else { return Ok(()) };
        let (k, d) = (N.reduced(&k), to_be(&N.reduced(&d)));
        prop_assume!(k != ZERO && d != [0; 32]);
        let key = SigningKey::new(token, &d).unwrap();
        let digest = to_be(&digest);
        assert_signature(&d, &digest, &k, signature(token, &key, &digest, &k));
        prop_assert_eq!(key.public(), aws_public(&d));
    }

    #[test]
    fn words_survive_bytes_and_limbs(a in any_words()) {
        prop_assert_eq!(from_be(&to_be(&a)), a);
        prop_assert_eq!(words::from_limbs(&words::limbs(&a)), a);
    }
}

/// a / 2^260: Montgomery's product with 1 / 2^4.
fn from_element(a: &Words) -> Words {
    let sixteenth = P.inverse(&P.scaled(&[16, 0, 0, 0]));
    P.product(&P.product(a, &[1, 0, 0, 0]), &sixteenth)
}

#[test]
fn debug_output_hides_the_key() {
    let Some(token) = ifma() else { return };
    let key = SigningKey::new(token, &[0x5a; 32]).unwrap();
    let shown: String = format!("{key:?}");
    assert_eq!(shown, "SigningKey");
}
