//! Whether this is a physical machine, a virtual one, or the inside of a container.

use crate::root::Root;
use serde::{Deserialize, Serialize};

/// The layers between this system and the hardware.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Virtualization {
    /// Whether a hypervisor was found; `None` if nothing tells.
    pub virtual_machine: Option<bool>,
    /// The hypervisor's name, such as `KVM`, if it shows.
    pub hypervisor: Option<String>,
    /// Whether the calling process seems to be in a container.
    pub container: bool,
    /// What emulates the processor, such as `qemu-tcg`, if whoever booted the kernel says so ([`EMULATED`]).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub emulated: Option<String>,
}

/// The word of the kernel's command line that says what emulates the processor: `timecell.emulated=qemu-tcg`.
pub const EMULATED: &str = "timecell.emulated";

/// What is said of every figure of an emulated machine.
pub const NOT_REPRESENTATIVE: &str = "emulated: not representative of timing";

impl Virtualization {
    /// The caution that belongs to every figure measured here, if the machine is emulated.
    pub fn caution(&self) -> Option<String> {
        let by = self.emulated.as_ref()?;
        Some(format!("{NOT_REPRESENTATIVE} ({by})"))
    }
}

impl std::fmt::Display for Virtualization {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.virtual_machine, &self.hypervisor) {
            (Some(true), Some(name)) => write!(f, "virtual machine ({name})")?,
            (Some(true), None) => write!(f, "virtual machine")?,
            (Some(false), _) => write!(f, "no hypervisor")?,
            (None, _) => write!(f, "unknown whether a virtual machine")?,
        }
        if self.container {
            write!(f, ", inside a container")?;
        }
        if let Some(caution) = self.caution() {
            write!(f, ", {caution}")?;
        }
        Ok(())
    }
}

/// Vendor or product names of DMI that belong to virtual machines.
const DMI_NAMES: [(&str, &str); 10] = [
    ("QEMU", "QEMU"),
    ("KVM", "KVM"),
    ("VMware", "VMware"),
    ("VirtualBox", "VirtualBox"),
    ("innotek", "VirtualBox"),
    ("Xen", "Xen"),
    ("Virtual Machine", "Hyper-V"),
    ("Google Compute Engine", "KVM, Google"),
    ("Parallels", "Parallels"),
    ("BHYVE", "bhyve"),
];

/// Looks for a hypervisor and for a container.
pub fn detect(root: &Root) -> Virtualization {
    let cpuinfo = root.read("/proc/cpuinfo").ok();
    let flag = cpuinfo.as_ref().map(|text| {
        text.lines()
            .filter(|line| line.starts_with("flags"))
            .any(|line| line.split_whitespace().any(|word| word == "hypervisor"))
    });
    let hypervisor = dmi(root)
        .or_else(|| {
            let kind = root.read("/sys/hypervisor/type").ok()?;
            Some(if kind == "xen" { "Xen".into() } else { kind })
        })
        .or_else(|| {
            // On ARM and RISC-V the hypervisor announces itself in the device tree.
            let name = root.read("/proc/device-tree/hypervisor/compatible").ok()?;
            let name = name.trim_end_matches('\0').split('\0').next()?.to_owned();
            Some(if name.contains("kvm") {
                "KVM".into()
            } else {
                name
            })
        })
        .or_else(|| {
            let clocks = root
                .read("/sys/devices/system/clocksource/clocksource0/available_clocksource")
                .ok()?;
            clocks.contains("kvm-clock").then(|| "KVM".to_owned())
        })
        .or_else(|| {
            // QEMU's own ARM board, with or without acceleration.
            let model = root.read("/proc/device-tree/model").ok()?;
            model.contains("dummy-virt").then(|| "QEMU".to_owned())
        });
    let virtual_machine = if hypervisor.is_some() || emulated(root).is_some() {
        Some(true)
    } else {
        flag
    };
    let marked = root.exists("/run/.containerenv")
        || root.exists("/.dockerenv")
        || root.exists("/run/systemd/container");
    // The marks also lie in machines whose disk was made from a container image; but only outside
    // of containers are the kernel's own threads in sight.
    let container = marked && root.read("/proc/2/comm").as_deref() != Ok("kthreadd");
    Virtualization {
        virtual_machine,
        hypervisor,
        container,
        emulated: emulated(root),
    }
}

fn emulated(root: &Root) -> Option<String> {
    let words = root.read("/proc/cmdline").ok()?;
    let mut said = words
        .split_whitespace()
        .filter_map(|word| word.strip_prefix(EMULATED)?.strip_prefix('='));
    said.next().filter(|by| !by.is_empty()).map(str::to_owned)
}

fn dmi(root: &Root) -> Option<String> {
    ["sys_vendor", "product_name", "board_vendor"]
        .iter()
        .filter_map(|file| root.read(format!("/sys/class/dmi/id/{file}")).ok())
        .find_map(|text| {
            let known = DMI_NAMES.iter().find(|(name, _)| text.contains(name))?;
            Some(known.1.to_owned())
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Tree;

    #[test]
    fn a_cpu_flag_without_a_name_is_enough() {
        let tree = Tree::new().file("/proc/cpuinfo", "flags\t\t: fpu hypervisor lahf_lm\n");
        let virt = detect(&tree.root());
        assert_eq!(virt.virtual_machine, Some(true));
        assert_eq!(virt.to_string(), "virtual machine");
    }

    #[test]
    fn real_machines_and_unknown_ones_differ() {
        let real = Tree::new()
            .file("/proc/cpuinfo", "flags : fpu\n")
            .file("/sys/class/dmi/id/sys_vendor", "Dell Inc.\n");
        assert_eq!(detect(&real.root()).virtual_machine, Some(false));
        assert_eq!(detect(&Tree::new().root()).virtual_machine, None);
    }

    #[test]
    fn a_mark_of_a_container_counts_only_where_kernel_threads_are_hidden() {
        let marked = || Tree::new().file("/.dockerenv", "");
        assert!(detect(&marked().root()).container);
        let machine = marked().file("/proc/2/comm", "kthreadd\n");
        assert!(!detect(&machine.root()).container);
    }

    #[test]
    fn hypervisors_are_named() {
        let name = |file: &str, text: &str| {
            detect(&Tree::new().file(file, text).root())
                .hypervisor
                .unwrap()
        };
        assert_eq!(name("/sys/class/dmi/id/sys_vendor", "QEMU\n"), "QEMU");
        assert_eq!(name("/sys/hypervisor/type", "xen\n"), "Xen");
        assert_eq!(
            name("/proc/device-tree/hypervisor/compatible", "linux,kvm\0"),
            "KVM"
        );
        assert_eq!(
            name(
                "/sys/devices/system/clocksource/clocksource0/available_clocksource",
                "tsc kvm-clock\n"
            ),
            "KVM"
        );
    }

    #[test]
    fn an_emulated_machine_is_told_by_its_kernels_command_line() {
        let tree = Tree::new().file(
            "/proc/cmdline",
            "console=ttyPS0 timecell.emulated=qemu-tcg quiet\n",
        );
        let virt = detect(&tree.root());
        assert_eq!(virt.virtual_machine, Some(true));
        assert_eq!(
            virt.to_string(),
            "virtual machine, emulated: not representative of timing (qemu-tcg)"
        );
        let other = Tree::new().file("/proc/cmdline", "timecell.emulated= timecell.emulatedx=1\n");
        assert_eq!(detect(&other.root()).emulated, None);
    }
}
