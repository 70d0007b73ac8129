//! The fair server of Linux 6.12 and later: a deadline server on each cpu that runs ordinary threads before real-time ones that
//! starve them. Real-time threads cannot count on the time that it may take.

use crate::root::{Root, Unreadable};
use crate::{debugfs, kernel};

/// The share that a cpu's fair server may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FairServer {
    /// So much, ns; 0: it is off.
    pub runtime_ns: u64,
    /// in every time of this length, ns.
    pub period_ns: u64,
}

impl FairServer {
    /// The kernel's default at boot.
    pub const USUAL: FairServer = FairServer {
        runtime_ns: 50_000_000,
        period_ns: 1_000_000_000,
    };

    /// Whether it may take a larger share of a cpu than another one.
    pub fn takes_more_than(self, other: FairServer) -> bool {
        let cross = |runtime: u64, period: u64| u128::from(runtime) * u128::from(period);
        cross(self.runtime_ns, other.period_ns) > cross(other.runtime_ns, self.period_ns)
    }

    /// The runtime that is the usual share of its own period, ns.
    pub fn usual_runtime_ns(self) -> u64 {
        self.period_ns / (Self::USUAL.period_ns / Self::USUAL.runtime_ns)
    }

    /// Its share of a cpu in percent.
    pub fn percent(self) -> f64 {
        self.runtime_ns as f64 * 100.0 / self.period_ns.max(1) as f64
    }
}

/// Whether this kernel has fair servers; `None` if nothing tells.
pub fn is_there(root: &Root) -> Option<bool> {
    match root.exists(debugfs::path("sched/fair_server")) {
        true => Some(true),
        false => kernel::is_since(root, 6, 12),
    }
}

/// The file of debugfs with the runtime of a cpu's server, ns.
pub(crate) fn runtime_file(cpu: u32) -> String {
    format!("sched/fair_server/cpu{cpu}/runtime")
}

/// The share that the server of this cpu may take.
///
/// # Errors
/// If debugfs does not say.
pub fn of_cpu(root: &Root, cpu: u32) -> Result<FairServer, Unreadable> {
    let number = |file: &str| -> Result<u64, Unreadable> {
        debugfs::read(root, file)?;
        root.read_number(debugfs::path(file))
    };
    let period = format!("sched/fair_server/cpu{cpu}/period");
    let server = FairServer {
        runtime_ns: number(&runtime_file(cpu))?,
        period_ns: number(&period)?,
    };
    match server.period_ns {
        0 => Err(Unreadable {
            path: debugfs::path(&period),
            reason: "its period is 0".to_owned(),
        }),
        _ => Ok(server),
    }
}

/// The share to reckon with on these cpus: the most that a server of one of them may take, and the default where that cannot be
/// read. `None`: this kernel has no fair server, or all of them are off.
pub fn most(root: &Root, cpus: &[u32]) -> Option<FairServer> {
    if is_there(root) == Some(false) {
        return None;
    }
    let of = |cpu: &u32| of_cpu(root, *cpu).unwrap_or(FairServer::USUAL);
    let most = largest(cpus.iter().map(of));
    Some(most.unwrap_or(FairServer::USUAL)).filter(|server| server.runtime_ns > 0)
}

/// The one that may take the largest share of its cpu, the first of several.
pub fn largest(servers: impl IntoIterator<Item = FairServer>) -> Option<FairServer> {
    (servers.into_iter()).reduce(|one, other| match other.takes_more_than(one) {
        true => other,
        false => one,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Tree;

    fn of(tree: Tree, cpu: u32, runtime: &str) -> Tree {
        let dir = format!("/sys/kernel/debug/sched/fair_server/cpu{cpu}");
        tree.file(&format!("{dir}/runtime"), runtime)
            .file(&format!("{dir}/period"), "1000000000\n")
    }

    #[test]
    fn what_nothing_tells_of_is_the_usual_and_old_kernels_have_none() {
        let release = |text: &str| Tree::new().file("/proc/sys/kernel/osrelease", text).root();
        let tree = |text: &str| Tree::new().file("/proc/sys/kernel/osrelease", text);
        let old = tree("6.1.0-rt\n");
        assert_eq!(most(&old.root(), &[0]), None);
        let new = tree("6.12.3\n");
        assert_eq!(most(&new.root(), &[0]), Some(FairServer::USUAL));
        assert_eq!(most(&release("strange\n"), &[0]), Some(FairServer::USUAL));
    }

    #[test]
    fn the_largest_counts_and_off_is_none() {
        let tree = of(of(Tree::new(), 0, "50000000\n"), 1, "200000000\n");
        assert_eq!(most(&tree.root(), &[0, 1]).unwrap().runtime_ns, 200_000_000);
        assert_eq!(most(&tree.root(), &[0]), Some(FairServer::USUAL));
        let off = of(of(Tree::new(), 0, "0\n"), 1, "0\n");
        assert_eq!(most(&off.root(), &[0, 1]), None);
        let strange = of(Tree::new(), 0, "much\n");
        assert!(of_cpu(&strange.root(), 0).is_err());
        let never = of(Tree::new(), 0, "1\n")
            .file("/sys/kernel/debug/sched/fair_server/cpu0/period", "0\n");
        assert!(of_cpu(&never.root(), 0).is_err());
        assert_eq!(most(&strange.root(), &[0]), Some(FairServer::USUAL));
    }

    #[test]
    fn shares_of_different_periods_are_compared_exactly() {
        let server = |runtime_ns, period_ns| FairServer {
            runtime_ns,
            period_ns,
        };
        assert!(server(6, 100).takes_more_than(server(50, 1_000)));
        assert!(!server(5, 100).takes_more_than(server(50, 1_000)));
        assert!(server(u64::MAX, u64::MAX).takes_more_than(server(1, 2)));
    }
}
