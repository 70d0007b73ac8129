//! Cells that run applications: any root filesystem, OCI bundle, static program or image, isolated so that it
//! cannot get out, and created in two steps, so that the caller can set class, cpus and groups before the first instruction. Here live
//! the specification of such a cell, the steps of its making that engines share, its output, its end and its adoption from a
//! supervisor that was killed. Which cells there are, and their rights, are decided above.

mod asking;
mod bundle;
pub(crate) mod capabilities;
mod cell;
mod check;
pub(crate) mod config;
mod create;
mod devices;
pub(crate) mod ended;
pub(crate) mod engine;
pub(crate) mod executor;
pub(crate) mod freezer;
mod grants;
pub(crate) mod groups;
mod log;
mod machine;
mod magic_links;
pub(crate) mod making;
mod own_image;
mod partition;
mod paths;
pub(crate) mod program;
pub(crate) mod record;
pub(crate) mod root;
pub(crate) mod sources;
pub(crate) mod spec;
pub(crate) mod start;

pub use asking::{Asking, Looks};
pub use bundle::{Bundle, BundleError, ignored};
pub use cell::AppCell;
pub use check::{check_image, check_program};
pub use create::{
    Adoption, adopt, create, image_user, knows_image, requirements, unmet, writes_output,
};
pub use ended::{Ended, become_subreaper};
pub use freezer::Freezing;
pub use grants::{Granted, Grants, RealTime, Scheduling, Seccomp};
pub use log::{DRAINED_BYTES, Log};
pub use machine::{least_memory, machine};
pub use making::{Launcher, Streams};
pub use partition::{partition, refuses_partition};
pub use spec::{Access, AppSpec, Bind, Device, Ids, Image, Limits, Network, Tmpfs};
