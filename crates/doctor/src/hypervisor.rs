//! Hypervisor detection.

use crate::system::System;

/// Prefixes of firmware and vendor names of virtual machines.
const NAMES: [&str; 15] = [
    "Amazon EC2",
    "Apple Virtualization",
    "BHYVE",
    "Bochs",
    "Google Compute Engine",
    "Hyper-V",
    "KVM",
    "OpenStack",
    "Parallels",
    "QEMU",
    "Virtual Machine",
    "VirtualBox",
    "VMware",
    "Xen",
    "innotek GmbH",
];

/// `None` if unknown. x86 has a CPU flag for it; elsewhere there are only names, and the absence of a known
/// name proves nothing.
pub(crate) fn is_below(system: &System) -> Option<bool> {
    if system.has("proc/device-tree/hypervisor") || kind(system).is_some() {
        return Some(true);
    }
    match system.field("proc/cpuinfo", "flags") {
        Some(flags) => Some(flags.split(' ').any(|flag| flag == "hypervisor")),
        None => {
            let product = dmi(system, "product_name");
            // Amazon's bare-metal machines have its name too.
            let is_metal = product.as_ref().is_some_and(|name| name.ends_with(".metal"));
            let mut names = [product, dmi(system, "sys_vendor")].into_iter().flatten();
            let is_known = names.any(|name| NAMES.iter().any(|known| name.starts_with(known)));
            (is_known && !is_metal).then_some(true)
        }
    }
}

/// The name of the hypervisor, or else of the machine.
pub(crate) fn name(system: &System) -> Option<String> {
    kind(system).or_else(|| dmi(system, "product_name"))
}

fn kind(system: &System) -> Option<String> {
    system.read("sys/hypervisor/type").filter(|text| !text.is_empty())
}

fn dmi(system: &System, file: &str) -> Option<String> {
    system.read(&format!("sys/class/dmi/id/{file}")).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Tree;

    /// ARM has `Features` instead of x86's `flags`, and no hypervisor flag.
    #[test]
    fn a_virtual_machine_without_a_flag_is_known_by_its_names() {
        const PRODUCT: &str = "sys/class/dmi/id/product_name";
        const VENDOR: (&str, &str) = ("sys/class/dmi/id/sys_vendor", "Amazon EC2\n");
        let below = |files: &[(&str, &str)]| {
            let tree = Tree::new(&[("proc/cpuinfo", "processor\t: 0\nFeatures\t: fp asimd aes\n")]);
            files.iter().for_each(|(path, text)| tree.write(path, text.as_bytes()));
            is_below(&tree.system())
        };
        assert_eq!(below(&[]), None);
        assert_eq!(below(&[("proc/device-tree/hypervisor/compatible", "kvm")]), Some(true));
        assert_eq!(below(&[(PRODUCT, "KVM Virtual Machine\n")]), Some(true));
        assert_eq!(below(&[VENDOR, (PRODUCT, "m7g.large\n")]), Some(true));
        assert_eq!(below(&[VENDOR, (PRODUCT, "m7g.metal\n")]), None);
    }
}
