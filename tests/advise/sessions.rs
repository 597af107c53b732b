//! How long servers keep sessions, as found by returning clients.

use super::services::{WINDOW, advice, ids};
use crate::common::Certificates;
use crate::servers::Server;

#[test]
fn a_session_cache_that_is_too_small_is_told_from_one_that_is_not() {
    for (kibibytes, expected) in [(32, vec!["session-cache-too-small"]), (10_240, vec![])] {
        let certificates = Certificates::new();
        let settings = format!(
            "ssl_protocols TLSv1.2 TLSv1.3; ssl_session_tickets off; ssl_session_cache shared:S:{kibibytes}k; keepalive_timeout 75s;"
        );
        let Some(nginx) = Server::nginx_of_sessions(&certificates, &settings) else { return };
        let advice = advice(&format!("https://{}", nginx.address(true)), &certificates.ca, WINDOW, &[]);
        assert_eq!(ids(&advice), expected, "{kibibytes}: {}", advice["facts"]);
    }
}
