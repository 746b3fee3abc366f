//! The way from the host to each AMD GPU: every bridge has to pass atomic operations on, and the root port to perform
//! them (PCI Express Base Specification, "AtomicOp"; the kernel's `pci_enable_atomic_ops_to_root`).

use super::Line;
use super::topology::Reading;
use kfd::System;
use kfd::uapi::sysfs;

const DEVICES: &str = "/sys/devices";
const AMD: u32 = 0x1002;

/// Bridges behind one another; more are a damaged tree.
const MAX_DEPTH: usize = 16;

/// Bytes of config space that every user may read.
const PUBLIC_CONFIG: usize = 64;

/// Device Capabilities 2: the port passes atomic operations on.
const CAP2_ROUTING: u32 = 1 << 6;
/// Device Capabilities 2: performs 32-bit atomic operations.
const CAP2_COMP32: u32 = 1 << 7;
/// Device Capabilities 2: performs 64-bit atomic operations.
const CAP2_COMP64: u32 = 1 << 8;
/// Device Control 2: the port blocks atomic operations on the way out.
const CONTROL2_EGRESS_BLOCK: u32 = 1 << 7;

/// Where a device is: its address, its folder, those of the bridges above it.
struct Gpu {
    bdf: String,
    /// From the root port to the device itself.
    path: Vec<(String, String)>,
    device: u32,
}

/// What matters of the PCI Express capability.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Express {
    port: u16,
    cap2: u32,
    control2: u32,
}

/// Whether a name is an address such as `0000:03:00.0`.
fn is_bdf(name: &str) -> bool {
    let bytes = name.as_bytes();
    bytes.len() == 12
        && bytes.iter().enumerate().all(|(i, b)| match i {
            4 | 7 => *b == b':',
            10 => *b == b'.',
            _ => b.is_ascii_hexdigit(),
        })
}

fn hex(system: &System, path: &str) -> Option<u32> {
    let bytes = system.read(path).ok()?;
    u32::from_str_radix(std::str::from_utf8(&bytes).ok()?.trim().strip_prefix("0x")?, 16).ok()
}

/// Finds AMD GPUs below a folder, depth first.
fn find(system: &System, folder: &str, above: &[(String, String)], found: &mut Vec<Gpu>) {
    if above.len() >= MAX_DEPTH {
        return;
    }
    let mut names = system.list(folder).unwrap_or_default();
    names.sort();
    for bdf in names.into_iter().filter(|name| is_bdf(name)) {
        let folder = format!("{folder}/{bdf}");
        let mut path = above.to_vec();
        path.push((bdf.clone(), folder.clone()));
        let class = hex(system, &format!("{folder}/class")).unwrap_or(0) >> 8;
        match class {
            // Display controllers, and the processing accelerators that server GPUs are.
            0x0300 | 0x0302 | 0x0380 | 0x1200 if hex(system, &format!("{folder}/vendor")) == Some(AMD) => {
                let device = hex(system, &format!("{folder}/device")).unwrap_or(0);
                found.push(Gpu { bdf, path, device });
            }
            0x0604 => find(system, &folder, &path, found),
            _ => {}
        }
    }
}

/// The PCI Express capability of a config space. None when it has none or is cut short.
fn express(config: &[u8]) -> Option<Express> {
    let byte = |at: usize| config.get(at).copied();
    let dword = |at: usize| Some(u32::from_le_bytes(config.get(at..at + 4)?.try_into().ok()?));
    // Status register, bit 4: there is a list of capabilities.
    if byte(6)? & 0x10 == 0 {
        return None;
    }
    let mut at = usize::from(byte(0x34)? & !3);
    // Each capability has four bytes at least, so more than 48 of them are a loop.
    for _ in 0..48 {
        if at < 0x40 {
            return None;
        }
        if byte(at)? == 0x10 {
            let flags = dword(at)? >> 16;
            return Some(Express {
                port: (flags >> 4 & 15) as u16,
                cap2: dword(at + 0x24)?,
                control2: dword(at + 0x28)? & 0xffff,
            });
        }
        at = usize::from(byte(at + 1)? & !3);
    }
    None
}

/// What a hop lacks; empty when it does what it must.
fn lacks(express: &Express) -> Vec<&'static str> {
    let without = |bit, text| (express.cap2 & bit == 0).then_some(text);
    match express.port {
        // Root port.
        4 => [without(CAP2_COMP32, "32-bit AtomicOp completion"), without(CAP2_COMP64, "64-bit AtomicOp completion")]
            .into_iter()
            .flatten()
            .collect(),
        // Upstream and downstream port of a switch.
        5 | 6 => {
            let blocked = express.port == 5 && express.control2 & CONTROL2_EGRESS_BLOCK != 0;
            let blocked = blocked.then_some("AtomicOps let out (egress blocking is on)");
            without(CAP2_ROUTING, "AtomicOp routing").into_iter().chain(blocked).collect()
        }
        _ => Vec::new(),
    }
}

fn port_name(port: u16) -> &'static str {
    match port {
        4 => "root port",
        5 => "upstream port",
        6 => "downstream port",
        9 => "integrated in the root complex",
        0 | 1 => "endpoint",
        _ => "port",
    }
}

/// A line for each AMD GPU on the bus.
pub fn lines(system: &System, topology: &Reading) -> Vec<Line> {
    let mut gpus = Vec::new();
    let mut roots = system.list(DEVICES).unwrap_or_default();
    roots.sort();
    for root in roots.iter().filter(|name| name.starts_with("pci")) {
        find(system, &format!("{DEVICES}/{root}"), &[], &mut gpus);
    }
    if gpus.is_empty() {
        let text = "no AMD GPU on the PCI bus, as far as sysfs shows";
        return match topology.gpus().next() {
            Some(_) => vec![Line::note("pci", text)],
            None => {
                vec![Line::failure("pci", text, "none is passed to this machine, or none is there: look at lspci -nn")]
            }
        };
    }
    gpus.iter().flat_map(|gpu| gpu_lines(system, topology, gpu, &roots)).collect()
}

/// Whether the KFD lists the device at this address, and its node.
fn listed<'a>(topology: &'a Reading, bdf: &str) -> Option<&'a kfd::Node> {
    let part = |range| u32::from_str_radix(bdf.get(range)?, 16).ok();
    let (domain, bus) = (part(0..4)?, part(5..7)?);
    let function = part(8..10)? << 3 | part(11..12)?;
    let location = bus << 8 | function;
    topology
        .gpus()
        .find(|node| node.properties.location_id == Some(location) && node.properties.domain.unwrap_or(0) == domain)
}

fn gpu_lines(system: &System, topology: &Reading, gpu: &Gpu, roots: &[String]) -> Vec<Line> {
    let node = listed(topology, &gpu.bdf);
    let name = format!("{} [1002:{:04x}]", gpu.bdf, gpu.device);
    let mut hops = Vec::new();
    let mut missing = Vec::new();
    let mut hidden = false;
    for (bdf, folder) in &gpu.path[..gpu.path.len().saturating_sub(1)] {
        let config = system.read(&format!("{folder}/config")).unwrap_or_default();
        match express(&config) {
            Some(express) => {
                let lacks = lacks(&express);
                let verdict =
                    if lacks.is_empty() { "good".to_owned() } else { format!("lacks {}", lacks.join(" and ")) };
                hops.push(format!("{bdf} ({}): {verdict}", port_name(express.port)));
                missing.extend(lacks.iter().map(|lack| format!("{} {bdf} lacks {lack}", port_name(express.port))));
            }
            None if config.len() <= PUBLIC_CONFIG => hidden = true,
            None => missing.push(format!("bridge {bdf} has no PCI Express capability")),
        }
    }
    let mut lines = Vec::new();
    if !missing.is_empty() {
        let text = format!("{name}: no atomic operations between it and the host: {}", missing.join("; "));
        let remedy = match other_slot(system, roots, &gpu.path) {
            Some(port) => format!("put the card in the slot below root port {port}, which performs them"),
            None => "try another slot, one wired to the processor; the firmware setup may have a switch for AtomicOps"
                .to_owned(),
        };
        lines.push(match node {
            None => Line::failure("atomics", format!("{text}; the KFD does not list it"), remedy),
            Some(_) => Line::warning("atomics", format!("{text}; the KFD lists it all the same"), remedy),
        });
        lines.push(Line::note("path", format!("the way to {}: {}", gpu.bdf, hops.join(", "))));
        return lines;
    }
    match node {
        None => lines.push(Line::failure(
            "pci",
            format!("{name}: an AMD GPU that the KFD does not list"),
            "too old, hidden by a container's device cgroup, or its firmware: dmesg | grep -iE 'kfd|amdgpu' names the reason",
        )),
        Some(node) => lines.extend(link(system, node, &name)),
    }
    lines.push(match (hops.is_empty(), hidden) {
        (_, true) => Line::note(
            "atomics",
            format!("{name}: the bridges above it can be checked by root only, who may read their config space"),
        ),
        (true, false) => Line::good("atomics", format!("{name}: no bridge between it and the root complex")),
        (false, false) => {
            Line::good("atomics", format!("{name}: atomic operations reach the host: {}", hops.join(", ")))
        }
    });
    lines
}

/// What the KFD itself says of the link to the host, which every user may read.
fn link(system: &System, node: &kfd::Node, name: &str) -> Option<Line> {
    let links = node.io_links(system).ok()?;
    let flags = links.iter().find_map(|link| link.flags)?;
    let without = [(sysfs::IOLINK_FLAGS_NO_ATOMICS_32_BIT, "32"), (sysfs::IOLINK_FLAGS_NO_ATOMICS_64_BIT, "64")];
    let without: Vec<&str> = without.iter().filter(|(flag, _)| flags & flag != 0).map(|(_, bits)| *bits).collect();
    (!without.is_empty()).then(|| {
        let text = format!("{name}: the KFD's link to the host has no {}-bit atomics", without.join("- and "));
        let remedy = "device printf and malloc of HIP need them; try another slot, one wired to the processor";
        Line::warning("link", text, remedy)
    })
}

/// A root port with all it takes that is not on this path.
fn other_slot(system: &System, roots: &[String], path: &[(String, String)]) -> Option<String> {
    let taken = path.first().map(|(bdf, _)| bdf.as_str());
    for root in roots.iter().filter(|name| name.starts_with("pci")) {
        let folder = format!("{DEVICES}/{root}");
        let mut names = system.list(&folder).unwrap_or_default();
        names.sort();
        for bdf in names.into_iter().filter(|name| is_bdf(name) && Some(name.as_str()) != taken) {
            let express = express(&system.read(&format!("{folder}/{bdf}/config")).unwrap_or_default());
            if express.is_some_and(|express| express.port == 4 && lacks(&express).is_empty()) {
                return Some(bdf);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn addresses() {
        assert!(is_bdf("0000:03:00.0") && is_bdf("ffff:ff:1f.7"));
        for bad in ["", "pci0000:00", "0000:03:00", "0000:03:00.00", "0000-03:00.0"] {
            assert!(!is_bdf(bad), "{bad}");
        }
    }

    #[test]
    fn a_loop_of_capabilities_ends() {
        let mut config = [0; 256];
        (config[6], config[0x34], config[0x40], config[0x41]) = (0x10, 0x40, 5, 0x40);
        assert_eq!(express(&config), None);
        // The capability is at the very end, its second half beyond.
        (config[0x41], config[0xf0]) = (0xf0, 0x10);
        assert_eq!(express(&config), None);
    }

    proptest! {
        #[test]
        fn any_config_space_is_handled(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = express(&bytes);
        }
    }
}
