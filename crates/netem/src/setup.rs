//! Setting up and tearing down a network.

use crate::description::{Kind, Network};
use crate::error::NetError;
use crate::namespaces::{Namespace, clean_dead, ip, next_number, run};
use crate::relay::{Leg, Settings};
use crate::relay_process::RelayProcess;
use crate::report::{Emulation, NetReport, RelayReport};
use std::fs;
use std::path::Path;
use weir_doctor::proc::{field, text};

/// The address of all listeners on loopback.
pub const LOOPBACK_ADDRESS: &str = "127.0.0.1";
/// The gateway's address in its namespace, from the range for benchmarks (RFC 2544).
pub const GATEWAY_ADDRESS: &str = "198.18.0.2";
/// The origin's address in its namespace.
pub const ORIGIN_ADDRESS: &str = "198.18.1.2";
/// Additional source addresses of the load engine, if one has too few ports (`--source`).
pub const LOAD_SOURCES: &str = "198.18.2.0/24";
const LOAD_ADDRESS: &str = "198.18.0.1";
const UPSTREAM_ADDRESS: &str = "198.18.1.1";

/// `CAP_NET_ADMIN` and `CAP_SYS_ADMIN`.
const CAPABILITIES: u64 = 1 << 12 | 1 << 21;
/// Netem's queue limit, the same as our relay's.
const NETEM_LIMIT: &str = "16384";

/// The location of a process in the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The load engine's.
    Load,
    /// The gateway's.
    Gateway,
    /// The origin's.
    Origin,
}

/// Parameters of the delay relay, if needed.
#[derive(Clone, Copy, Debug)]
pub struct RelayPlace<'a> {
    /// The `weir` program.
    pub weir: &'a Path,
    /// Its cores: best its own, or the load engine's, never the gateway's.
    pub core: usize,
    /// Seed for the choice of lost packets.
    pub seed: u64,
}

/// A running network. Dropping it removes it and the relay; stop the processes in it first.
#[derive(Debug)]
pub struct Net {
    network: Network,
    emulation: Emulation,
    congestion_control: Option<String>,
    // Dropped before the namespaces, which it uses.
    relay: Option<RelayProcess>,
    /// By [`Place`].
    spaces: Option<[Namespace; 3]>,
}

/// One side: two namespaces, the address in each, and the device name in both.
struct Side<'a> {
    device: &'static str,
    ends: [(&'a Namespace, &'static str); 2],
    parts: [&'static str; 2],
    emulated: bool,
}

impl Net {
    /// Sets up the network, after removing leftovers of dead labs. Loopback needs no setup.
    ///
    /// # Errors
    /// The description is invalid; privileges, `ip`, `nsenter` or `/dev/net/tun` are missing; a command failed.
    pub fn set_up(network: &Network, relay: &RelayPlace<'_>) -> Result<Self, NetError> {
        network.check()?;
        if network.kind == Kind::Loopback {
            return Ok(Self {
                network: *network,
                emulation: Emulation::None,
                congestion_control: congestion_control(),
                relay: None,
                spaces: None,
            });
        }
        require_rights()?;
        run("nsenter", "util-linux", &["--version"])?;
        clean_dead()?;
        let number = next_number();
        let make = |part| Namespace::make(number, part);
        let spaces = [make("load")?, make("gateway")?, make("origin")?];
        let (emulation, relay) = join(network, &spaces, relay)?;
        let congestion_control = spaces[Place::Gateway as usize].inside(congestion_control)?;
        Ok(Self { network: *network, emulation, congestion_control, relay, spaces: Some(spaces) })
    }

    /// The command prefix for processes there.
    pub fn prefix(&self, place: Place) -> Vec<String> {
        self.space(place).map(Namespace::prefix).unwrap_or_default()
    }

    /// The address for the gateway to listen on and the load engine to connect to.
    pub fn gateway_address(&self) -> &'static str {
        if self.spaces.is_some() { GATEWAY_ADDRESS } else { LOOPBACK_ADDRESS }
    }

    /// The address for the origin to listen on and the gateway (or, without one, the load engine) to connect to.
    pub fn origin_address(&self) -> &'static str {
        if self.spaces.is_some() { ORIGIN_ADDRESS } else { LOOPBACK_ADDRESS }
    }

    /// Calls `work` on a thread in that namespace: a readiness check, or to read `/proc/thread-self/net`.
    ///
    /// # Errors
    /// The namespace cannot be entered.
    pub fn inside<T: Send>(&self, place: Place, work: impl FnOnce() -> T + Send) -> Result<T, NetError> {
        match self.space(place) {
            Some(space) => space.inside(work),
            None => Ok(work()),
        }
    }

    /// The relay's process, if any: its CPU time belongs to the network, not to a part under test.
    pub fn relay_pid(&self) -> Option<u32> {
        self.relay.as_ref().map(RelayProcess::pid)
    }

    /// Loopback with a relay that delays nothing: `weir` may be any program that prints `ready`.
    ///
    /// # Errors
    /// The program cannot be started, or prints something else.
    #[cfg(feature = "testing")]
    pub fn with_relay(weir: &Path) -> Result<Self, NetError> {
        let place = RelayPlace { weir, core: 0, seed: 1 };
        let relay = start_relay(&Network::default(), Vec::new(), &place)?;
        Ok(Self { relay: Some(relay), ..Self::set_up(&Network::default(), &place)? })
    }

    /// Stops the relay, removes the network, and returns the report.
    ///
    /// # Errors
    /// The relay exited early, and why.
    pub fn finish(mut self) -> Result<NetReport, NetError> {
        let relay = self.relay.take().map(RelayProcess::finish).transpose()?;
        Ok(NetReport {
            network: self.network,
            emulation: self.emulation,
            congestion_control: self.congestion_control.take(),
            fault: relay.as_ref().and_then(RelayReport::fault),
            relay,
        })
    }

    fn space(&self, place: Place) -> Option<&Namespace> {
        self.spaces.as_ref().map(|spaces| &spaces[place as usize])
    }
}

/// Connects the namespaces: a veth pair per side, or the relay's devices for delay or loss without netem.
fn join(
    network: &Network,
    spaces: &[Namespace; 3],
    place: &RelayPlace<'_>,
) -> Result<(Emulation, Option<RelayProcess>), NetError> {
    let [load, gateway, origin] = spaces;
    let emulated = network.is_emulated();
    let sides = [
        Side {
            device: "client",
            ends: [(load, LOAD_ADDRESS), (gateway, GATEWAY_ADDRESS)],
            parts: ["load", "gateway"],
            emulated: emulated && network.between.client(),
        },
        Side {
            device: "upstream",
            ends: [(gateway, UPSTREAM_ADDRESS), (origin, ORIGIN_ADDRESS)],
            parts: ["gateway", "origin"],
            emulated: emulated && network.between.upstream(),
        },
    ];
    let mut relayed = Vec::new();
    for side in &sides {
        side.add_veth()?;
        if side.emulated && !side.add_netem(network)? {
            side.ends[0].0.ip(&["link", "del", side.device])?;
            relayed.push(side.leg());
        }
    }
    let emulation = match (emulated, relayed.is_empty()) {
        (false, _) => Emulation::None,
        (true, true) => Emulation::Netem,
        (true, false) => Emulation::Relay,
    };
    let relay = if relayed.is_empty() { None } else { Some(start_relay(network, relayed, place)?) };
    let mtu = network.mtu_bytes().to_string();
    for side in &sides {
        for (space, address) in &side.ends {
            space.ip(&["addr", "add", &format!("{address}/30"), "dev", side.device])?;
            space.ip(&["link", "set", side.device, "mtu", &mtu, "up"])?;
        }
    }
    load.ip(&["route", "add", "local", LOAD_SOURCES, "dev", "lo"])?;
    gateway.ip(&["route", "add", LOAD_SOURCES, "via", LOAD_ADDRESS])?;
    // A load engine that connects directly to the origin goes through the gateway's namespace.
    load.ip(&["route", "add", "default", "via", GATEWAY_ADDRESS])?;
    origin.ip(&["route", "add", "default", "via", UPSTREAM_ADDRESS])?;
    let forward = gateway.inside(|| fs::write("/proc/sys/net/ipv4/ip_forward", "1"))?;
    forward.map_err(|source| NetError::System { action: "cannot forward between namespaces", source })?;
    Ok((emulation, relay))
}

fn start_relay(network: &Network, legs: Vec<Leg>, place: &RelayPlace<'_>) -> Result<RelayProcess, NetError> {
    if !Path::new("/dev/net/tun").exists() {
        let words =
            "net.rtt_ms and net.loss_percent need /dev/net/tun (kernel module `tun`), or netem (`sch_netem`)";
        return Err(NetError::Missing(words.into()));
    }
    let settings = Settings {
        legs,
        rtt_ms: network.rtt_ms,
        loss_percent: network.loss_percent,
        mtu: network.mtu_bytes(),
        seed: place.seed,
        core: place.core,
    };
    RelayProcess::start(place.weir, &settings)
}

impl Side<'_> {
    fn add_veth(&self) -> Result<(), NetError> {
        let [near, far] = self.ends.map(|(space, _)| space.name());
        let name = self.device;
        ip(&["link", "add", name, "netns", near, "type", "veth", "peer", "name", name, "netns", far])
    }

    /// Adds netem to both ends; false if the kernel or `tc` does not support it.
    fn add_netem(&self, network: &Network) -> Result<bool, NetError> {
        let delay = format!("{}us", (network.rtt_ms * 500.0).round());
        let loss = format!("{}%", network.loss_percent);
        for (space, _) in &self.ends {
            let netem = ["netem", "delay", &delay, "loss", &loss, "limit", NETEM_LIMIT];
            let words =
                [&["-n", space.name(), "qdisc", "add", "dev", self.device, "root"][..], &netem].concat();
            if run("tc", "iproute2", &words).is_err() {
                return Ok(false);
            }
            // Otherwise 64 KiB would be delayed or lost as one packet.
            space.ip(&["link", "set", self.device, "gso_max_segs", "1"])?;
        }
        Ok(true)
    }

    fn leg(&self) -> Leg {
        Leg {
            device: self.device.into(),
            namespaces: self.ends.map(|(space, _)| space.name().to_owned()),
            parts: self.parts.map(str::to_owned),
        }
    }
}

/// The value in the thread's network namespace.
fn congestion_control() -> Option<String> {
    text("sys/net/ipv4/tcp_congestion_control")
}

fn require_rights() -> Result<(), NetError> {
    let status = text("thread-self/status").unwrap_or_default();
    if may(&status) {
        return Ok(());
    }
    Err(NetError::Missing(
        "net.kind = \"veth\" needs root, or the capabilities CAP_NET_ADMIN and CAP_SYS_ADMIN; \
         net.kind = \"loopback\" needs neither"
            .into(),
    ))
}

fn may(status: &str) -> bool {
    let held = field(status, "CapEff").and_then(|value| u64::from_str_radix(value, 16).ok()).unwrap_or(0);
    held & CAPABILITIES == CAPABILITIES
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nowhere() -> RelayPlace<'static> {
        RelayPlace { weir: Path::new("/nowhere"), core: 0, seed: 1 }
    }

    #[test]
    fn loopback_needs_nothing_and_leaves_nothing() {
        let net = Net::set_up(&Network::default(), &nowhere()).expect("it is there");
        let places = [Place::Load, Place::Gateway, Place::Origin];
        assert!(places.into_iter().all(|place| net.prefix(place).is_empty()));
        assert_eq!((net.gateway_address(), net.origin_address()), ("127.0.0.1", "127.0.0.1"));
        assert_eq!(net.inside(Place::Load, || 7).expect("here"), 7);
        assert_eq!(net.relay_pid(), None);
        let report = net.finish().expect("a report");
        assert_eq!((report.emulation, report.relay, report.fault), (Emulation::None, None, None));
    }

    #[test]
    fn a_wrong_description_makes_nothing() {
        let network = Network { rtt_ms: 1.0, ..Network::default() };
        let error = Net::set_up(&network, &nowhere()).expect_err("loopback has no delay");
        assert!(
            error.to_string().starts_with("network: net.rtt_ms: invalid value 1: expected none with"),
            "{error}"
        );
    }

    #[test]
    fn both_capabilities_are_needed() {
        assert!(may("Name:\tweir\nCapEff:\t000001ffffffffff\n"));
        assert!(!may("CapEff:\t0000000000001000\n"), "CAP_NET_ADMIN alone");
        assert!(!may("CapEff:\t0000000000000000\n"));
        assert!(!may(""));
    }
}
