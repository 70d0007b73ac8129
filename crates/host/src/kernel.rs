//! Which kernel runs: its release, its build options, its command line, its preemption model.

use crate::root::{Root, Unreadable};
use crate::{cpus, debugfs};
use std::io::Read;

/// The most bytes of build options that are unpacked; real ones have about 300 kB.
const MOST_CONFIG_BYTES: u64 = 8 << 20;

/// The parameters the kernel was booted with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandLine(String);

impl CommandLine {
    /// Reads `/proc/cmdline`.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn read(root: &Root) -> Result<Self, Unreadable> {
        root.read("/proc/cmdline").map(Self)
    }

    /// The whole line.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// The value of `name=value`; the empty text if it stands there without one. As in the kernel,
    /// the last mention counts, and words after ` -- ` belong to init.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0
            .split_whitespace()
            .take_while(|word| *word != "--")
            .filter_map(|word| {
                let (key, value) = word.split_once('=').unwrap_or((word, ""));
                (key == name).then_some(value.trim_matches('"'))
            })
            .last()
    }
}

/// The options the kernel was built with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuildOptions(String);

impl BuildOptions {
    /// Reads `/proc/config.gz`, else `/boot/config-<release>`.
    ///
    /// # Errors
    /// If there is neither, or the first cannot be unpacked and the second is missing.
    pub fn read(root: &Root) -> Result<Self, Unreadable> {
        if let Ok(packed) = root.read_bytes("/proc/config.gz") {
            let mut text = String::new();
            let unpacked = flate2::read::GzDecoder::new(&packed[..])
                .take(MOST_CONFIG_BYTES)
                .read_to_string(&mut text);
            if unpacked.is_ok() {
                return Ok(Self(text));
            }
        }
        root.read(format!("/boot/config-{}", release(root)?))
            .map(Self)
            .map_err(|error| Unreadable {
                path: format!("/proc/config.gz (or {})", error.path),
                reason: error.reason,
            })
    }

    /// The value of an option such as `CONFIG_HZ`; `None` if it is not set.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0
            .lines()
            .find_map(|line| line.trim().strip_prefix(name)?.strip_prefix('='))
    }

    /// Whether an option is `y`.
    pub fn has(&self, name: &str) -> bool {
        self.get(name) == Some("y")
    }
}

/// The release, such as `6.18.0`.
///
/// # Errors
/// If `/proc/sys/kernel/osrelease` cannot be read.
pub fn release(root: &Root) -> Result<String, Unreadable> {
    root.read("/proc/sys/kernel/osrelease")
}

/// The build version, such as `#1 SMP PREEMPT_RT Thu Jan 1`.
///
/// # Errors
/// If `/proc/sys/kernel/version` cannot be read.
pub fn version(root: &Root) -> Result<String, Unreadable> {
    root.read("/proc/sys/kernel/version")
}

/// Ticks of the scheduler in a second (`CONFIG_HZ`); `None` if nothing tells. The live kernel tells by the resolution of
/// its coarse clocks, which is its tick, also where it was built without `/proc/config.gz`.
pub fn tick_hz(root: &Root) -> Option<u32> {
    if root.is_live() {
        return coarse_resolution_ns().map(|ns| ((1_000_000_000 + ns / 2) / ns) as u32);
    }
    let options = BuildOptions::read(root).ok()?;
    let hz = options.get("CONFIG_HZ")?.parse().ok();
    hz.filter(|hz| *hz > 0)
}

/// Resolution of CLOCK_MONOTONIC_COARSE, ns, if it is a tick that Linux can have (100 to 1,200 Hz).
fn coarse_resolution_ns() -> Option<u64> {
    let ns = crate::clock::resolution(libc::CLOCK_MONOTONIC_COARSE)?;
    (800_000..=11_000_000).contains(&ns).then_some(ns)
}

/// Whether SCHED_DEADLINE ends runtimes by a timer of its own (the scheduler's feature HRTICK_DL, before Linux 5.12 HRTICK)
/// instead of by the tick; `None` if nothing tells: debugfs is not mounted, or not readable. The kernel's default is no.
pub fn deadline_by_timer(root: &Root) -> Option<bool> {
    let features = debugfs::read(root, FEATURES).ok()?;
    feature(&features, "HRTICK_DL").or_else(|| feature(&features, "HRTICK"))
}

/// Where debugfs has the scheduler's features.
pub const FEATURES: &str = "sched/features";

/// Whether a feature is on in the list of them, in which `NO_` stands before those that are off; `None`: it is not in the list.
pub(crate) fn feature(list: &str, name: &str) -> Option<bool> {
    list.split_whitespace().find_map(|word| match word {
        word if word == name => Some(true),
        word if word.strip_prefix("NO_") == Some(name) => Some(false),
        _ => None,
    })
}

/// Whether the kernel is of this release or a later one; `None` if its release cannot be read or understood.
pub fn is_since(root: &Root, major: u32, minor: u32) -> Option<bool> {
    let release = release(root).ok()?;
    let mut numbers = release
        .split(|c: char| !c.is_ascii_digit())
        .map(str::parse::<u32>);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(has_major)), Some(Ok(has_minor))) => {
            Some((has_major, has_minor) >= (major, minor))
        }
        _ => None,
    }
}

/// Whether `kernel.sched_rt_runtime_us` stops threads of class FIFO and RR: since Linux 6.12 only a kernel built with
/// RT_GROUP_SCHED does that, and the others leave it to the [fair server](crate::fair_server). `None` if nothing tells.
pub fn throttles_real_time(root: &Root) -> Option<bool> {
    if !is_since(root, 6, 12)? {
        return Some(true);
    }
    match BuildOptions::read(root) {
        Ok(options) => Some(options.has("CONFIG_RT_GROUP_SCHED")),
        Err(_) => crate::rtgroup::detect_at(root).is_ok().then_some(true),
    }
}

/// The cpus whose RCU callbacks run elsewhere, in threads: those of `rcu_nocbs=` and of `nohz_full`, which implies it. None on a kernel that is known
/// to be built without RCU_NOCB_CPU, which ignores the parameter.
pub fn without_rcu_callbacks(root: &Root) -> Vec<u32> {
    let built = |name| {
        let options = BuildOptions::read(root).ok()?;
        Some(options.has(name))
    };
    if built("CONFIG_RCU_NOCB_CPU") == Some(false) {
        return Vec::new();
    }
    let possible = || cpus::list_file(root, "/sys/devices/system/cpu/possible").unwrap_or_default();
    let line = CommandLine::read(root).ok();
    let mut cpus = match line.as_ref().and_then(|line| line.get("rcu_nocbs")) {
        None if built("CONFIG_RCU_NOCB_CPU_DEFAULT_ALL") == Some(true) => possible(),
        None => Vec::new(),
        // Without a value it only lets cpus be chosen later.
        Some("") => Vec::new(),
        Some("all") => possible(),
        Some(list) => {
            // N stands for the last cpu there can be.
            let last = possible().last().copied().unwrap_or(0);
            cpus::parse_list(&list.replace('N', &last.to_string())).unwrap_or_default()
        }
    };
    cpus.extend(cpus::list_file(root, "/sys/devices/system/cpu/nohz_full").unwrap_or_default());
    cpus.sort_unstable();
    cpus.dedup();
    cpus
}

/// The instruction set, such as `x86_64` or `aarch64`.
pub fn arch(root: &Root) -> String {
    // Linux 6.1 and newer have the file.
    root.read("/proc/sys/kernel/arch")
        .unwrap_or_else(|_| std::env::consts::ARCH.to_owned())
}

/// Whether the kernel is a PREEMPT_RT one; `None` if nothing tells.
pub fn is_preempt_rt(root: &Root) -> Option<bool> {
    if let Ok(flag) = root.read("/sys/kernel/realtime") {
        return Some(flag == "1");
    }
    let version = version(root).ok()?;
    // Patched kernels before 6.12 write "PREEMPT RT".
    Some(version.contains("PREEMPT_RT") || version.contains("PREEMPT RT"))
}

/// How eagerly a kernel that is not PREEMPT_RT lets itself be interrupted: `none`, `voluntary`,
/// `lazy` or `full`; `None` if nothing tells.
pub fn preemption_model(root: &Root) -> Option<String> {
    // "none voluntary (full) lazy"; needs debugfs and root.
    if let Ok(models) = root.read("/sys/kernel/debug/sched/preempt")
        && let Some(model) = models
            .split_whitespace()
            .find_map(|word| word.strip_prefix('(')?.strip_suffix(')'))
    {
        return Some(model.to_owned());
    }
    if is_dynamic(root)
        && let Ok(line) = CommandLine::read(root)
        && let Some(model) = line.get("preempt")
        && ["none", "voluntary", "full", "lazy"].contains(&model)
    {
        return Some(model.to_owned());
    }
    if let Ok(options) = BuildOptions::read(root) {
        let models = [
            ("CONFIG_PREEMPT_NONE", "none"),
            ("CONFIG_PREEMPT_VOLUNTARY", "voluntary"),
            ("CONFIG_PREEMPT_LAZY", "lazy"),
            ("CONFIG_PREEMPT", "full"),
        ];
        if let Some((_, model)) = models.iter().find(|(name, _)| options.has(name)) {
            return Some((*model).to_owned());
        }
    }
    // "PREEMPT" alone is a fully preemptible kernel; "PREEMPT_DYNAMIC" does not tell the default.
    version(root)
        .ok()
        .filter(|version| version.split_whitespace().any(|word| word == "PREEMPT"))
        .map(|_| "full".to_owned())
}

/// Whether the preemption model can be chosen at boot and at run time.
pub fn is_dynamic(root: &Root) -> bool {
    version(root).is_ok_and(|version| version.contains("PREEMPT_DYNAMIC"))
        || root.exists("/sys/kernel/debug/sched/preempt")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Tree, gzip};

    #[test]
    fn the_last_mention_of_a_parameter_counts() {
        let tree = Tree::new().file(
            "/proc/cmdline",
            "quiet isolcpus=1 isolcpus=2-3 -- isolcpus=9\n",
        );
        let line = CommandLine::read(&tree.root()).unwrap();
        assert_eq!(line.get("isolcpus"), Some("2-3"));
        assert_eq!(line.get("quiet"), Some(""));
        assert_eq!(line.get("iso"), None);
    }

    #[test]
    fn build_options_come_packed_or_from_boot() {
        let text = "CONFIG_HZ=250\n# CONFIG_NO_HZ_FULL is not set\nCONFIG_HZ_250=y\n";
        let packed = Tree::new().bytes("/proc/config.gz", &gzip(text));
        let boot = Tree::new()
            .file("/proc/sys/kernel/osrelease", "6.1.0\n")
            .bytes("/proc/config.gz", b"not gzip")
            .file("/boot/config-6.1.0", text);
        for tree in [packed, boot] {
            let options = BuildOptions::read(&tree.root()).unwrap();
            assert_eq!(tick_hz(&tree.root()), Some(250));
            assert_eq!(options.get("CONFIG_HZ"), Some("250"));
            assert!(options.has("CONFIG_HZ_250"));
            assert!(!options.has("CONFIG_NO_HZ_FULL"));
        }
        assert!(BuildOptions::read(&Tree::new().root()).is_err());
    }

    #[test]
    fn what_ends_runtimes_is_found_among_the_features() {
        let of = |features: &str| {
            let tree = Tree::new().file("/sys/kernel/debug/sched/features", features);
            deadline_by_timer(&tree.root())
        };
        assert_eq!(of("PLACE_LAG NO_HRTICK NO_HRTICK_DL\n"), Some(false));
        assert_eq!(of("PLACE_LAG HRTICK HRTICK_DL\n"), Some(true));
        assert_eq!(of("PLACE_LAG NO_HRTICK\n"), Some(false));
        assert_eq!(of("PLACE_LAG HRTICK\n"), Some(true));
        assert_eq!(of("PLACE_LAG\n"), None);
        assert_eq!(tick_hz(&Tree::new().root()), None);
    }

    #[test]
    fn who_stops_real_time_threads_depends_on_release_and_options() {
        let of = |release: &str, options: Option<&str>| {
            let tree = Tree::new().file("/proc/sys/kernel/osrelease", release);
            let tree = match options {
                Some(options) => tree.bytes("/proc/config.gz", &gzip(options)),
                None => tree,
            };
            throttles_real_time(&tree.root())
        };
        let groups = Some("CONFIG_RT_GROUP_SCHED=y\n");
        let none = Some("# CONFIG_RT_GROUP_SCHED is not set\n");
        assert_eq!(of("6.1.0-56-rt-amd64\n", none), Some(true));
        assert_eq!(of("6.11.9\n", None), Some(true));
        assert_eq!(of("6.12.0\n", none), Some(false));
        assert_eq!(of("6.18.44\n", groups), Some(true));
        assert_eq!(of("7.1\n", None), None);
        assert_eq!(of("unknown\n", groups), None);
    }

    #[test]
    fn rcu_callbacks_are_where_the_parameter_leaves_them() {
        let of = |line: &str, options: &str| {
            let tree = Tree::new()
                .file("/proc/cmdline", line)
                .file("/sys/devices/system/cpu/possible", "0-3\n")
                .bytes("/proc/config.gz", &gzip(options));
            without_rcu_callbacks(&tree.root())
        };
        let built = "CONFIG_RCU_NOCB_CPU=y\n";
        assert_eq!(of("quiet rcu_nocbs=1,3\n", built), [1, 3]);
        assert_eq!(of("rcu_nocbs=2-N\n", built), [2, 3]);
        assert_eq!(of("rcu_nocbs=all\n", built), [0, 1, 2, 3]);
        assert!(of("rcu_nocbs\n", built).is_empty());
        let all = "CONFIG_RCU_NOCB_CPU=y\nCONFIG_RCU_NOCB_CPU_DEFAULT_ALL=y\n";
        assert_eq!(of("quiet\n", all), [0, 1, 2, 3]);
        assert!(of("rcu_nocbs=1,3\n", "CONFIG_HZ=250\n").is_empty());
        let nohz = Tree::new().file("/sys/devices/system/cpu/nohz_full", "2\n");
        assert_eq!(without_rcu_callbacks(&nohz.root()), [2]);
    }

    #[test]
    fn the_clock_and_the_configuration_name_the_same_tick() {
        let root = Root::live();
        let by_clock = tick_hz(&root);
        assert!(by_clock.is_some_and(|hz| hz >= 100));
        if let Ok(options) = BuildOptions::read(&root) {
            assert_eq!(
                options.get("CONFIG_HZ"),
                by_clock.map(|hz| hz.to_string()).as_deref()
            );
        }
    }

    #[test]
    fn the_model_is_found_from_the_surest_source() {
        let dynamic = || {
            Tree::new()
                .file("/proc/sys/kernel/version", "#1 SMP PREEMPT_DYNAMIC\n")
                .bytes("/proc/config.gz", &gzip("CONFIG_PREEMPT_NONE=y\n"))
        };
        let model = |tree: Tree| preemption_model(&tree.root());
        assert_eq!(model(dynamic()).unwrap(), "none");
        let booted = dynamic().file("/proc/cmdline", "preempt=full");
        assert_eq!(model(booted).unwrap(), "full");
        let debugfs = dynamic().file(
            "/sys/kernel/debug/sched/preempt",
            "none voluntary full (lazy)\n",
        );
        assert_eq!(model(debugfs).unwrap(), "lazy");
        assert_eq!(model(Tree::new()), None);
    }
}
