//! rustls with the settings that the experiment pins: version, suite, group, tickets, certificate and CA.

use crate::settings::Settings;
use rustls::crypto::CryptoProvider;
use rustls::crypto::aws_lc_rs::{self, cipher_suite as suite, kx_group};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore, ServerConfig, SupportedProtocolVersion, version};
use std::error::Error;
use std::sync::Arc;

/// The client side's settings; an error is an unknown name, an unreadable file, or a setting that rustls rejects.
pub fn server(settings: &Settings) -> Result<ServerConfig, Box<dyn Error>> {
    let chain = CertificateDer::pem_file_iter(settings.text("cert"))?.collect::<Result<Vec<_>, _>>()?;
    let key = PrivateKeyDer::from_pem_file(settings.text("key"))?;
    let mut config = ServerConfig::builder_with_provider(provider(settings)?)
        .with_protocol_versions(&[protocol(settings)?])?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    // Stateless tickets, in the same number as in every target that can set it.
    config.ticketer = aws_lc_rs::Ticketer::new()?;
    config.send_tls13_tickets = settings.number("tickets")?;
    let protocol: &[u8] = if settings.side("client-side")?.http2 { b"h2" } else { b"http/1.1" };
    config.alpn_protocols = vec![protocol.to_vec()];
    Ok(config)
}

/// The upstream side's settings: the certificate is verified; sessions are resumed, rustls' default. Errors as
/// [`server`].
pub fn client(settings: &Settings) -> Result<ClientConfig, Box<dyn Error>> {
    let mut roots = RootCertStore::empty();
    for authority in CertificateDer::pem_file_iter(settings.text("ca"))? {
        roots.add(authority?)?;
    }
    Ok(ClientConfig::builder_with_provider(provider(settings)?)
        .with_protocol_versions(&[protocol(settings)?])?
        .with_root_certificates(roots)
        .with_no_client_auth())
}

fn protocol(settings: &Settings) -> Result<&'static SupportedProtocolVersion, String> {
    match settings.text("tls-version") {
        "1.2" => Ok(&version::TLS12),
        "1.3" => Ok(&version::TLS13),
        other => Err(format!("--tls-version: invalid value `{other}`: expected 1.2 or 1.3")),
    }
}

fn provider(settings: &Settings) -> Result<Arc<CryptoProvider>, String> {
    let suite = match settings.text("suite") {
        "aes128-gcm-sha256" => suite::TLS13_AES_128_GCM_SHA256,
        "aes256-gcm-sha384" => suite::TLS13_AES_256_GCM_SHA384,
        "chacha20-poly1305-sha256" => suite::TLS13_CHACHA20_POLY1305_SHA256,
        "ecdhe-ecdsa-aes128-gcm-sha256" => suite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
        "ecdhe-ecdsa-aes256-gcm-sha384" => suite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
        "ecdhe-ecdsa-chacha20-poly1305" => suite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
        other => return Err(format!("--suite: unknown suite `{other}`")),
    };
    let group = match settings.text("group") {
        "x25519" => kx_group::X25519,
        "p256" => kx_group::SECP256R1,
        "p384" => kx_group::SECP384R1,
        other => return Err(format!("--group: invalid value `{other}`: expected x25519, p256 or p384")),
    };
    let all = aws_lc_rs::default_provider();
    Ok(Arc::new(CryptoProvider { cipher_suites: vec![suite], kx_groups: vec![group], ..all }))
}
