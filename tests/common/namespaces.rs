//! Network namespaces. They need root, /dev/net/tun and `ip`; otherwise tests skip them.

use super::peer;
use std::path::Path;
use std::sync::OnceLock;
use weir_lab::running::host::allowed_cores;
use weir_netem::{Kind, Net, Network, RelayPlace};

/// Whether this machine supports network namespaces; prints the reason if not.
pub fn possible() -> bool {
    static MISSING: OnceLock<Option<String>> = OnceLock::new();
    let missing = MISSING.get_or_init(|| {
        if peer("ip").is_none() {
            return Some("ip (iproute2) is missing".into());
        }
        if !Path::new("/dev/net/tun").exists() {
            return Some("/dev/net/tun is missing".into());
        }
        let error = Net::set_up(&veth(), &relay_place()).err()?.to_string();
        error.contains("needs root").then_some(error)
    });
    if let Some(missing) = missing {
        println!("skipped: {missing}");
    }
    missing.is_none()
}

pub fn relay_place() -> RelayPlace<'static> {
    RelayPlace { weir: Path::new(env!("CARGO_BIN_EXE_weir")), core: allowed_cores().unwrap()[0], seed: 1 }
}

pub fn veth() -> Network {
    Network { kind: Kind::Veth, ..Network::default() }
}

/// The namespaces of the lab process with this PID.
pub fn namespaces_of(pid: u32) -> Vec<String> {
    let prefix = format!("weir-{pid}-");
    let Ok(entries) = std::fs::read_dir("/run/netns") else { return Vec::new() };
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.starts_with(&prefix)).collect()
}
