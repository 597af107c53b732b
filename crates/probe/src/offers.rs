//! Enumerating a server's choices by offering everything except its previous choices.

/// The outcome of one offer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// The server chose this one.
    Chose(u16),
    /// It rejected the offer.
    Refused,
    /// The connection was lost for an unrelated reason.
    Lost(String),
}

/// What a server accepts of an offer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Found {
    /// In the order chosen by the server.
    pub(crate) numbers: Vec<u16>,
    /// Why the list may be incomplete.
    pub(crate) lost: Option<String>,
}

/// Whose preference decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Preference {
    /// The server's own.
    Server,
    /// The client's.
    Client,
    /// Neither consistently.
    Mixed,
}

/// Offers everything, then everything not yet chosen, until the server refuses: one more question than
/// choices.
pub(crate) fn enumerate(all: &[u16], mut ask: impl FnMut(&[u16]) -> Asked) -> Found {
    let mut left = all.to_vec();
    let mut found = Found::default();
    while !left.is_empty() {
        match ask(&left) {
            Asked::Chose(number) => {
                let Some(at) = left.iter().position(|offered| *offered == number) else {
                    found.lost = Some(format!("the server chose 0x{number:04x}, which was not offered"));
                    break;
                };
                left.remove(at);
                found.numbers.push(number);
            }
            Asked::Refused => break,
            Asked::Lost(why) => {
                found.lost = Some(why);
                break;
            }
        }
    }
    found
}

/// Offers the server's choices in reverse order, with `late` last: servers with their own preference
/// may still honour a client that prefers one of these. `None` if there is no choice or
/// no response.
pub(crate) fn preference(
    found: &[u16],
    late: impl Fn(u16) -> bool,
    ask: impl FnOnce(&[u16]) -> Asked,
) -> Option<Preference> {
    if found.len() < 2 {
        return None;
    }
    let mut reversed = found.iter().rev().copied().collect::<Vec<_>>();
    reversed.sort_by_key(|number| late(*number));
    // The server's favourite must not be first in both orders.
    if reversed[0] == found[0] {
        reversed.rotate_left(1);
    }
    match ask(&reversed) {
        Asked::Chose(number) if number == found[0] => Some(Preference::Server),
        Asked::Chose(number) if number == reversed[0] => Some(Preference::Client),
        Asked::Chose(_) => Some(Preference::Mixed),
        Asked::Refused | Asked::Lost(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [u16; 5] = [1, 2, 3, 4, 5];

    /// Chooses by its own order.
    fn by_server(has: &[u16]) -> impl Fn(&[u16]) -> Asked + use<'_> {
        |offered| has.iter().find(|n| offered.contains(n)).map_or(Asked::Refused, |n| Asked::Chose(*n))
    }

    /// Chooses by the client's order.
    fn by_client(has: &[u16]) -> impl Fn(&[u16]) -> Asked + use<'_> {
        |offered| offered.iter().find(|n| has.contains(n)).map_or(Asked::Refused, |n| Asked::Chose(*n))
    }

    #[test]
    fn all_that_a_server_has_in_its_order() {
        for has in [&[][..], &[3], &[4, 1, 2], &[5, 4, 3, 2, 1], &[9, 2, 8]] {
            let mut asked = 0;
            let found = enumerate(&ALL, |offered| {
                asked += 1;
                by_server(has)(offered)
            });
            let expected = has.iter().copied().filter(|n| ALL.contains(n)).collect::<Vec<_>>();
            assert_eq!(found, Found { numbers: expected.clone(), lost: None });
            assert_eq!(asked, (expected.len() + 1).min(ALL.len()), "{has:?}");
        }
        assert_eq!(enumerate(&ALL, by_client(&[4, 1, 2])).numbers, [1, 2, 4]);
    }

    #[test]
    fn a_lost_connection_keeps_what_was_found() {
        let mut answers = [Asked::Chose(2), Asked::Lost("gone".into())].into_iter();
        let found = enumerate(&ALL, |_| answers.next().unwrap());
        assert_eq!(found, Found { numbers: vec![2], lost: Some("gone".into()) });
    }

    #[test]
    fn a_choice_that_was_not_offered_ends_it() {
        let found = enumerate(&ALL, |_| Asked::Chose(7));
        assert_eq!(found.numbers, []);
        assert!(found.lost.unwrap().contains("0x0007"));
        // Always the same one.
        let found = enumerate(&ALL, |_| Asked::Chose(1));
        assert_eq!(found.numbers, [1]);
    }

    #[test]
    fn whose_order_decides() {
        let never = |_| false;
        let found = [4, 1, 2];
        assert_eq!(preference(&found, never, by_server(&found)), Some(Preference::Server));
        assert_eq!(preference(&found, never, by_client(&found)), Some(Preference::Client));
        assert_eq!(preference(&found, never, |_| Asked::Chose(1)), Some(Preference::Mixed));
        assert_eq!(preference(&found, never, |_| Asked::Refused), None);
        assert_eq!(preference(&[4], never, |_| unreachable!()), None);
    }

    /// BoringSSL and OpenSSL can honour a client that prefers ChaCha20, and use their own order
    /// otherwise.
    #[test]
    fn a_favour_for_some_clients_is_not_taken_for_the_clients_order() {
        let favours_5 = |offered: &[u16]| match offered {
            [5, ..] => Asked::Chose(5),
            _ => by_server(&[4, 1, 5])(offered),
        };
        assert_eq!(preference(&[4, 1, 5], |n| n == 5, favours_5), Some(Preference::Server));
        assert_eq!(preference(&[4, 1, 5], |_| false, favours_5), Some(Preference::Client));
        assert_eq!(preference(&[5, 1], |n| n == 5, by_server(&[5, 1])), Some(Preference::Server));
        assert_eq!(preference(&[5, 1], |n| n == 5, by_client(&[5, 1])), Some(Preference::Client));
        assert_eq!(preference(&[1, 5], |n| n == 5, by_server(&[1, 5])), Some(Preference::Server));
    }
}
