//! The engines, each described once: which cells it makes and from which images, which helper process it keeps beside them, and how long
//! creation takes. Files, options, lists and estimates take this from here; the engines themselves are in crate `engine`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::Choice;
use crate::file::{names_of, unknown};
use crate::mission::ImageKind;

/// The means by which a cell is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EngineKind {
    /// A plain process: the baseline of every comparison.
    Bare,
    /// The OCI runtime linked into timecell; needs no program.
    Embedded,
    /// The `crun` OCI runtime.
    Crun,
    /// The `runc` OCI runtime.
    Runc,
    /// `podman` run by root.
    Podman,
    /// `podman` run by an unprivileged user.
    PodmanRootless,
    /// `docker`, where its daemon answers.
    Docker,
    /// A virtual machine that QEMU runs.
    Qemu,
    /// A partition of the machine beside Linux, which the Jailhouse hypervisor holds.
    Jailhouse,
}

/// The process that an engine keeps beside each cell and that belongs to this cell alone, so that it can die without it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Helper {
    /// There always is one.
    Always,
    /// The runtime itself, if it is told to stay until the cell ends. Such an engine makes and removes a cell in one call.
    Attached,
    /// There is none, for this reason.
    Never(&'static str),
}

/// Everything that depends on the engine.
struct Description {
    name: &'static str,
    summary: &'static str,
    /// The images of which it makes cells that run applications.
    images: &'static [ImageKind],
    /// Why missions have no cells of it; follows its name in sentences.
    no_missions: Option<&'static str>,
    helper: Helper,
    is_rootless: bool,
    creation_ns: i64,
}

const OCI: Description = Description {
    name: "",
    summary: "",
    images: &[ImageKind::Rootfs, ImageKind::Bundle, ImageKind::Binary],
    no_missions: None,
    helper: Helper::Attached,
    is_rootless: false,
    creation_ns: 60_000_000,
};

/// The engines for which this holds, in the order of [`EngineKind::ALL`], as a constant.
macro_rules! those {
    (|$kind:ident| $holds:expr) => {{
        const fn holds($kind: EngineKind) -> bool {
            $holds
        }
        const COUNT: usize = {
            let (mut at, mut count) = (0, 0);
            while at < EngineKind::ALL.len() {
                count += holds(EngineKind::ALL[at]) as usize;
                at += 1;
            }
            count
        };
        &{
            let mut found = [EngineKind::Bare; COUNT];
            let (mut at, mut place) = (0, 0);
            while at < EngineKind::ALL.len() {
                if holds(EngineKind::ALL[at]) {
                    found[place] = EngineKind::ALL[at];
                    place += 1;
                }
                at += 1;
            }
            found
        }
    }};
}

impl EngineKind {
    /// Every engine, in the order in which tables list them.
    pub const ALL: [EngineKind; 9] = [
        EngineKind::Bare,
        EngineKind::Embedded,
        EngineKind::Crun,
        EngineKind::Runc,
        EngineKind::Podman,
        EngineKind::PodmanRootless,
        EngineKind::Docker,
        EngineKind::Qemu,
        EngineKind::Jailhouse,
    ];

    /// Those whose cells are measured, in the same order.
    pub const OF_BENCH: &'static [EngineKind] = those!(|kind| !kind.is_partition());

    /// The engines of missions, in the same order.
    pub const OF_MISSIONS: &'static [EngineKind] = those!(|kind| kind.no_missions().is_none());

    /// Those of the cells that loads run in: OCI runtimes and virtual machines, in the same order.
    pub const OF_LOADS: &'static [EngineKind] =
        those!(|kind| kind.is_runtime() || kind.is_machine());

    /// The OCI runtimes, in the same order.
    pub const RUNTIMES: &'static [EngineKind] = those!(|kind| kind.is_runtime());

    const fn description(self) -> Description {
        match self {
            EngineKind::Bare => Description {
                name: "bare",
                summary: "A plain process; the baseline",
                images: &[ImageKind::Binary],
                no_missions: Some(
                    "makes plain processes, which nothing isolates from the rest of the machine",
                ),
                helper: Helper::Never("a plain process has no runtime"),
                creation_ns: 5_000_000,
                ..OCI
            },
            EngineKind::Embedded => Description {
                name: "embedded",
                summary: "The OCI runtime inside timecell (libcontainer)",
                ..OCI
            },
            EngineKind::Crun => Description {
                name: "crun",
                summary: "The OCI runtime in C",
                ..OCI
            },
            EngineKind::Runc => Description {
                name: "runc",
                summary: "The OCI runtime in Go",
                ..OCI
            },
            EngineKind::Podman => Description {
                name: "podman",
                summary: "podman run by root",
                images: &[ImageKind::Rootfs, ImageKind::Reference, ImageKind::Binary],
                helper: Helper::Always,
                creation_ns: 700_000_000,
                ..OCI
            },
            EngineKind::PodmanRootless => Description {
                name: "podman-rootless",
                summary: "podman run by an ordinary user",
                images: &[],
                no_missions: Some(
                    "makes no cells of missions: an ordinary user may neither set a cell's budget nor enforce it",
                ),
                helper: Helper::Always,
                is_rootless: true,
                creation_ns: 700_000_000,
            },
            EngineKind::Docker => Description {
                name: "docker",
                summary: "docker, by its command line",
                images: &[],
                no_missions: Some(
                    "makes no cells of missions: its daemon starts programs before they have their budget",
                ),
                helper: Helper::Never(
                    "docker's shim belongs to its daemon, which serves others too",
                ),
                creation_ns: 700_000_000,
                ..OCI
            },
            EngineKind::Qemu => Description {
                name: "qemu",
                summary: "A virtual machine, by QEMU",
                images: &[ImageKind::Binary],
                helper: Helper::Never("QEMU is the machine itself"),
                creation_ns: 6_000_000_000,
                ..OCI
            },
            EngineKind::Jailhouse => Description {
                name: "jailhouse",
                summary: "A partition beside Linux, by Jailhouse",
                images: &[ImageKind::Inmate],
                helper: Helper::Always,
                creation_ns: 500_000_000,
                ..OCI
            },
        }
    }

    /// The name used in files, options and tables.
    pub const fn name(self) -> &'static str {
        self.description().name
    }

    /// Its description, in a few words for `--help`.
    pub const fn summary(self) -> &'static str {
        self.description().summary
    }

    /// Whether it makes cells that run applications from an image of this kind.
    pub fn makes(self, image: ImageKind) -> bool {
        self.description().images.contains(&image)
    }

    /// The engines of missions that make cells from an image of this kind.
    pub fn of_missions_from(image: ImageKind) -> Vec<EngineKind> {
        let all = EngineKind::OF_MISSIONS.iter().copied();
        all.filter(|engine| engine.makes(image)).collect()
    }

    /// Why missions have no cells of it, to follow its name in a sentence; `None`: they may have some.
    pub const fn no_missions(self) -> Option<&'static str> {
        self.description().no_missions
    }

    /// The process that it keeps beside each cell.
    pub const fn helper(self) -> Helper {
        self.description().helper
    }

    /// Whether one call makes a cell from a bundle that anybody may write, waits for its end and removes it, as OCI runtimes do.
    pub const fn is_runtime(self) -> bool {
        matches!(self.helper(), Helper::Attached)
    }

    /// [`EngineKind::RUNTIMES`].
    pub fn runtimes() -> impl Iterator<Item = EngineKind> {
        EngineKind::RUNTIMES.iter().copied()
    }

    /// Whether an unprivileged user runs its cells.
    pub const fn is_rootless(self) -> bool {
        self.description().is_rootless
    }

    /// Whether its cells are machines with a kernel of their own.
    pub const fn is_machine(self) -> bool {
        matches!(self, EngineKind::Qemu)
    }

    /// Whether its cells run beside Linux, on cpus and in memory that Linux does not have meanwhile.
    pub const fn is_partition(self) -> bool {
        matches!(self, EngineKind::Jailhouse)
    }

    /// The typical time from the request to the start of the payload, ns; only used for the first estimate of a run's
    /// length.
    pub const fn creation_ns(self) -> i64 {
        self.description().creation_ns
    }
}

impl Choice for EngineKind {
    const VALUES: &'static [EngineKind] = &EngineKind::ALL;
    const WORDS: &'static [&'static str] = &names_of!([], EngineKind::ALL);
}

impl fmt::Display for EngineKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for EngineKind {
    type Err = String;

    /// Reads the name of one whose cells are measured; the error is a sentence that lists these names, nearest first.
    fn from_str(text: &str) -> Result<EngineKind, String> {
        (EngineKind::OF_BENCH.iter().copied())
            .find(|kind| kind.name() == text)
            .ok_or_else(|| {
                if EngineKind::OF_MISSIONS.iter().any(|kind| kind.name() == text) {
                    return format!(
                        "cells of `{text}` run no program that is measured; measure a mission with them: `timecell bench mission MISSION`"
                    );
                }
                let all = "the engines are";
                let names: Vec<&str> = EngineKind::OF_BENCH
                    .iter()
                    .map(|kind| kind.name())
                    .collect();
                let (what, fix) = unknown("engine", text, all, &names);
                format!("{what}; {fix}")
            })
    }
}
