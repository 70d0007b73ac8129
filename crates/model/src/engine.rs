//! The kinds of engines.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// What makes a cell.
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
}

impl EngineKind {
    /// Every engine, in the order in which tables list them.
    pub const ALL: [EngineKind; 7] = [
        EngineKind::Bare,
        EngineKind::Embedded,
        EngineKind::Crun,
        EngineKind::Runc,
        EngineKind::Podman,
        EngineKind::PodmanRootless,
        EngineKind::Docker,
    ];

    /// The name used in files, options and tables.
    pub const fn name(self) -> &'static str {
        match self {
            EngineKind::Bare => "bare",
            EngineKind::Embedded => "embedded",
            EngineKind::Crun => "crun",
            EngineKind::Runc => "runc",
            EngineKind::Podman => "podman",
            EngineKind::PodmanRootless => "podman-rootless",
            EngineKind::Docker => "docker",
        }
    }
}

impl fmt::Display for EngineKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for EngineKind {
    type Err = String;

    /// Reads a name; the error is a sentence that lists the names, nearest first.
    fn from_str(text: &str) -> Result<EngineKind, String> {
        EngineKind::ALL
            .into_iter()
            .find(|kind| kind.name() == text)
            .ok_or_else(|| {
                let names = EngineKind::ALL.map(EngineKind::name);
                let near = crate::reader::nearest(text, &names)
                    .map(|name| format!("did you mean `{name}`? "))
                    .unwrap_or_default();
                format!(
                    "unknown engine `{text}`; {near}the engines are {}",
                    names.join(", ")
                )
            })
    }
}
