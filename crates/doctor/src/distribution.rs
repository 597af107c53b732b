//! The install command for a package on this distribution.

use std::fs;

/// Words of /etc/os-release, and those distributions' command.
const MANAGERS: [(&[&str], &str); 5] = [
    (&["debian", "ubuntu"], "apt-get install"),
    (&["fedora", "rhel", "centos"], "dnf install"),
    (&["alpine"], "apk add"),
    (&["arch"], "pacman -S"),
    (&["suse", "opensuse"], "zypper install"),
];

/// `install it with `apt-get install nginx``, or on an unknown distribution the package's name.
pub fn how_to_get(package: &str) -> String {
    match manager(&fs::read_to_string("/etc/os-release").unwrap_or_default()) {
        Some(command) => format!("install it with `{command} {package}` as root"),
        None => format!("install the distribution's package {package}"),
    }
}

/// ID names the distribution, ID_LIKE its ancestors.
fn manager(release: &str) -> Option<&'static str> {
    let value = |key| release.lines().find_map(|line: &str| line.strip_prefix(key)).unwrap_or_default();
    let names = [value("ID="), value("ID_LIKE=")].join(" ").replace(['"', '-'], " ");
    let is_named = |known: &[&str]| names.split_whitespace().any(|name| known.contains(&name));
    MANAGERS.into_iter().find(|(known, _)| is_named(known)).map(|(_, command)| command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distributions_and_their_descendants_have_their_own_command() {
        for (release, command) in [
            ("PRETTY_NAME=\"Debian GNU/Linux 12\"\nID=debian\n", Some("apt-get install")),
            ("ID=linuxmint\nID_LIKE=\"ubuntu debian\"\n", Some("apt-get install")),
            ("ID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"\n", Some("dnf install")),
            ("ID=opensuse-leap\n", Some("zypper install")),
            ("ID=gentoo\n", None),
            ("", None),
        ] {
            assert_eq!(manager(release), command, "{release}");
        }
    }
}
