//! Properties for arbitrary bytes, called by the fuzz targets and by the crate's tests, with the committed
//! corpus and generated input.

use weir_probe::{Answer, Certificate, MAX_ANSWER, Until};

/// A server's response, after a byte that says how far to read it: parsing does not depend on how the bytes arrive,
/// and ignores what follows its end.
pub fn answer(input: &[u8]) {
    let Some((&until, bytes)) = input.split_first() else { return };
    let until = [Until::Hello, Until::HelloDone, Until::Encrypted][usize::from(until) % 3];
    let whole = Answer::read(bytes, until);
    let step = (bytes.len() / 256).max(1);
    for length in (0..bytes.len()).step_by(step) {
        match (Answer::read(&bytes[..length], until), &whole) {
            (Ok(None), _) | (Err(_), Err(_)) => {}
            (Ok(Some(early)), Ok(Some(answer))) => assert_eq!(early, *answer),
            (early, _) => panic!("{early:?} at {length}, later {whole:?}"),
        }
    }
    match whole {
        Ok(Some(Answer::Flight(flight))) => {
            // Everything parsed (such as the chain) fits into the input.
            let chain = flight.chain.iter().map(Vec::len).sum::<usize>();
            assert!(chain + flight.session_id + flight.ticket.map_or(0, |t| t.bytes) < bytes.len());
            assert!(until != Until::Hello || flight.chain.is_empty());
            assert!(flight.prime_bits.is_none_or(|bits| bits <= bytes.len() * 8));
        }
        Ok(Some(Answer::Alert(code))) => assert!(bytes.contains(&code)),
        Ok(None) => assert!(bytes.len() <= MAX_ANSWER),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// A certificate: parsed, or rejected with a reason.
pub fn certificate(input: &[u8]) {
    match Certificate::read(input, 1_800_000_000) {
        Ok(certificate) => {
            assert_eq!(certificate.bytes, input.len());
            assert!(!certificate.key.is_empty() && !certificate.signature.is_empty());
            assert!(certificate.not_before.len() >= 10 && certificate.not_after.len() >= 10);
        }
        Err(why) => assert!(!why.is_empty()),
    }
}
