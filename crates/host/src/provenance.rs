//! Where and when a measurement was made: the machine, the kernel, the privileges, and the doctor's findings at that
//! moment. Without it a record proves nothing.

use crate::caps;
use crate::cpus;
use crate::doctor::{self, Check, State};
use crate::kernel;
use crate::root::Root;
use crate::virt::{self, Virtualization};
use serde::{Deserialize, Serialize};
use std::time::SystemTime;

/// The version of the shape of [`Provenance`]; it rises when a field changes its meaning or goes.
pub const SCHEMA: u32 = 1;

/// A program that makes cells, as found on this machine. Filled by those who know engines.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EngineFound {
    /// Such as `crun`.
    pub name: String,
    /// As it reports itself.
    pub version: Option<String>,
    /// Where the program is.
    pub path: Option<String>,
    /// Why it cannot be used, if so.
    pub problem: Option<String>,
}

/// The circumstances of a run. Fields that could not be read are `None`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Provenance {
    /// Version of this shape, [`SCHEMA`].
    pub schema: u32,
    /// When it was collected: RFC 3339, UTC, to the second.
    pub time_utc: String,
    /// Version of the timecell that collected it.
    pub timecell_version: String,
    /// Name of the machine.
    pub hostname: Option<String>,
    /// Kernel release, such as `6.18.0`.
    pub kernel_release: Option<String>,
    /// Kernel build version, such as `#1 SMP PREEMPT_RT`.
    pub kernel_version: Option<String>,
    /// Whether the kernel is a PREEMPT_RT one.
    pub preempt_rt: Option<bool>,
    /// Instruction set, such as `x86_64`.
    pub arch: String,
    /// The cpu's or the board's name for itself.
    pub cpu_model: Option<String>,
    /// Numbers of the cpus that are switched on.
    pub cpus_online: Vec<u32>,
    /// Size of the memory, in bytes.
    pub memory_bytes: Option<u64>,
    /// Parameters the kernel was booted with.
    pub cmdline: Option<String>,
    /// The layers between this system and the hardware.
    pub virtualization: Virtualization,
    /// User id of the collecting process.
    pub uid: Option<u32>,
    /// Effective capabilities of the collecting process.
    pub capabilities: Vec<String>,
    /// The doctor's findings.
    pub checks: Vec<Check>,
    /// The programs that make cells; empty until the caller fills it.
    #[serde(default)]
    pub engines: Vec<EngineFound>,
}

impl Provenance {
    /// Collects everything about this machine, except for the engines. `version` is that of the
    /// collecting program. Takes a little over 100 ms (see [`doctor::examine`]).
    pub fn collect(version: &str) -> Self {
        Self::collect_at(&Root::live(), version)
    }

    /// [`Provenance::collect`] for a machine whose files are under another root.
    pub fn collect_at(root: &Root, version: &str) -> Self {
        Self::collect_for(root, version, &doctor::rt_cpus(root))
    }

    /// [`Provenance::collect_at`] with the doctor's checks for real-time work on these cpus.
    pub fn collect_for(root: &Root, version: &str, cpus: &[u32]) -> Self {
        Self {
            schema: SCHEMA,
            time_utc: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
            timecell_version: version.to_owned(),
            hostname: root.read("/proc/sys/kernel/hostname").ok(),
            kernel_release: kernel::release(root).ok(),
            kernel_version: kernel::version(root).ok(),
            preempt_rt: kernel::is_preempt_rt(root),
            arch: kernel::arch(root),
            cpu_model: cpu_model(root),
            cpus_online: cpus::online_at(root).unwrap_or_default(),
            memory_bytes: memory_bytes(root),
            cmdline: root.read("/proc/cmdline").ok(),
            virtualization: virt::detect(root),
            uid: caps::own_uid(root),
            capabilities: caps::effective_at(root)
                .map(|held| held.names())
                .unwrap_or_default(),
            checks: doctor::examine_for(root, cpus),
            engines: Vec::new(),
        }
    }

    /// The machine in one line, such as
    /// `2 cpus AMD EPYC (virtual machine), Linux 6.18.0, not PREEMPT_RT`.
    pub fn one_line(&self) -> String {
        let count = self.cpus_online.len();
        let mut line = match count {
            0 => "unknown cpus".to_owned(),
            1 => "1 cpu".to_owned(),
            _ => format!("{count} cpus"),
        };
        line.push(' ');
        line.push_str(&match &self.cpu_model {
            Some(model) => short_model(model),
            None => self.arch.clone(),
        });
        if self.virtualization.emulated.is_some() {
            line.push_str(&format!(" ({})", virt::NOT_REPRESENTATIVE));
        } else if self.virtualization.virtual_machine == Some(true) {
            line.push_str(" (virtual machine)");
        }
        let release = self
            .kernel_release
            .as_deref()
            .unwrap_or("of unknown release");
        line.push_str(&format!(", Linux {release}"));
        line.push_str(match self.preempt_rt {
            Some(true) => ", PREEMPT_RT",
            Some(false) => ", not PREEMPT_RT",
            None => ", unknown whether PREEMPT_RT",
        });
        line
    }

    /// How many checks are a warning or bad.
    pub fn warnings(&self) -> usize {
        self.checks
            .iter()
            .filter(|check| matches!(check.state, State::Warning | State::Bad))
            .count()
    }
}

/// The name of the cpu: x86 names the model; ARM and RISC-V boards name themselves in the device
/// tree or leave numbers.
pub fn cpu_model(root: &Root) -> Option<String> {
    let cpuinfo = root.read("/proc/cpuinfo").unwrap_or_default();
    let field = |name: &str| {
        cpuinfo.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            let value = value.trim();
            (key.trim() == name && !value.is_empty()).then(|| value.to_owned())
        })
    };
    field("model name")
        .or_else(|| field("Model"))
        .or_else(|| {
            let model = root.read("/proc/device-tree/model").ok()?;
            Some(model.trim_end_matches('\0').to_owned()).filter(|model| !model.is_empty())
        })
        .or_else(|| field("Hardware"))
        .or_else(|| field("uarch"))
        .or_else(|| {
            Some(format!(
                "implementer {} part {}",
                field("CPU implementer")?,
                field("CPU part")?
            ))
        })
}

/// A model name without trade marks, clock speed and the words "CPU" and "Processor".
fn short_model(model: &str) -> String {
    let plain = ["(R)", "(TM)", "(tm)", "(r)"]
        .iter()
        .fold(model.to_owned(), |text, mark| text.replace(mark, ""));
    let plain = plain.split('@').next().unwrap_or_default();
    let words: Vec<&str> = plain
        .split_whitespace()
        .filter(|word| !["CPU", "Processor"].contains(word) && !word.ends_with("-Core"))
        .collect();
    if words.is_empty() {
        model.trim().to_owned()
    } else {
        words.join(" ")
    }
}

/// All memory of the machine, bytes; `None` if the kernel does not say.
pub fn memory_bytes(root: &Root) -> Option<u64> {
    let text = root.read("/proc/meminfo").ok()?;
    let kib: u64 = text
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))?
        .split_whitespace()
        .next()?
        .parse()
        .ok()?;
    kib.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Tree;

    fn tree() -> Tree {
        Tree::new()
            .file(
                "/proc/cpuinfo",
                "processor : 0\nmodel name\t: AMD EPYC 7763 64-Core Processor\nflags : hypervisor\n",
            )
            .file("/sys/devices/system/cpu/online", "0-1\n")
            .file("/proc/sys/kernel/osrelease", "6.18.0\n")
            .file("/proc/sys/kernel/version", "#1 SMP PREEMPT_DYNAMIC\n")
            .file("/proc/meminfo", "MemTotal:       1024 kB\n")
            .file("/proc/self/status", "Uid:\t7\t7\t7\t7\nCapEff:\t0000000000800000\n")
    }

    #[test]
    fn the_machine_fits_in_one_line() {
        let provenance = Provenance::collect_at(&tree().root(), "0.1.0");
        assert_eq!(
            provenance.one_line(),
            "2 cpus AMD EPYC 7763 (virtual machine), Linux 6.18.0, not PREEMPT_RT"
        );
        assert_eq!(provenance.memory_bytes, Some(1_048_576));
        assert_eq!(provenance.uid, Some(7));
        assert_eq!(provenance.capabilities, ["CAP_SYS_NICE"]);
        assert!(provenance.warnings() > 0);
    }

    #[test]
    fn a_machine_without_files_still_has_a_line() {
        let provenance = Provenance::collect_at(&Tree::new().root(), "0.1.0");
        assert!(
            provenance
                .one_line()
                .ends_with("Linux of unknown release, unknown whether PREEMPT_RT")
        );
    }

    #[test]
    fn boards_are_named_by_their_device_tree() {
        let tree = Tree::new()
            .file(
                "/proc/cpuinfo",
                "CPU implementer\t: 0x41\nCPU part\t: 0xd08\n",
            )
            .file(
                "/proc/device-tree/model",
                "Raspberry Pi 4 Model B Rev 1.4\0",
            );
        assert_eq!(
            cpu_model(&tree.root()).unwrap(),
            "Raspberry Pi 4 Model B Rev 1.4"
        );
        let bare = Tree::new().file(
            "/proc/cpuinfo",
            "CPU implementer : 0x41\nCPU part : 0xd08\n",
        );
        assert_eq!(
            cpu_model(&bare.root()).unwrap(),
            "implementer 0x41 part 0xd08"
        );
    }

    #[test]
    fn model_names_lose_their_noise() {
        assert_eq!(short_model("Intel(R) Xeon(R) Processor"), "Intel Xeon");
        assert_eq!(
            short_model("Intel(R) Core(TM) i7-8700 CPU @ 3.20GHz"),
            "Intel Core i7-8700"
        );
        assert_eq!(short_model("Processor"), "Processor");
    }

    #[test]
    fn it_survives_json_and_has_a_schema() {
        let provenance = Provenance::collect("0.1.0");
        let json = serde_json::to_string(&provenance).unwrap();
        assert!(json.starts_with("{\"schema\":1,"));
        assert_eq!(
            serde_json::from_str::<Provenance>(&json).unwrap(),
            provenance
        );
        assert!(
            provenance.time_utc.ends_with('Z'),
            "{}",
            provenance.time_utc
        );
    }
}
