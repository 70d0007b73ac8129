//! Cells that run applications: any root filesystem, OCI bundle, static program or image, kept in a cage that it cannot
//! leave and created in two steps, so that whoever asked for it can give it its class, cpus and groups before its first
//! instruction. Here live what such a cell is asked for, what its engines share in making it, its output, its end and
//! taking it over from a supervisor that was killed. Which cells there are to be, and what they may, is decided above.

mod asking;
mod bundle;
mod cell;
mod check;
mod config;
mod create;
mod devices;
pub(crate) mod ended;
pub(crate) mod engine;
pub(crate) mod executor;
pub(crate) mod freezer;
mod grants;
pub(crate) mod groups;
mod log;
mod magic_links;
pub(crate) mod making;
mod own_image;
mod paths;
pub(crate) mod program;
mod record;
pub(crate) mod root;
pub(crate) mod spec;
pub(crate) mod start;

pub use asking::{Asking, Looks};
pub use bundle::{Bundle, BundleError};
pub use cell::AppCell;
pub use check::{check_image, check_program};
pub use create::{
    Adoption, adopt, create, image_user, knows_image, requirements, unmet, writes_output,
};
pub use ended::{Ended, become_subreaper};
pub use freezer::Freezing;
pub use grants::{Grants, Scheduling, Seccomp};
pub use log::{DRAINED_BYTES, Log};
pub use making::{Launcher, Streams};
pub use spec::{Access, AppSpec, Bind, Device, Ids, Image, Limits, Network, Tmpfs};
