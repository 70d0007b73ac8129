//! Cells that run applications: any root filesystem, OCI bundle, static program or image, kept in a cage that it cannot
//! leave and created in two steps, so that whoever asked for it can give it its class, cpus and groups before its first
//! instruction. Here live what such a cell is asked for, its making in every engine that can, its output, its end and
//! taking it over from a supervisor that was killed. Which cells there are to be, and what they may, is decided above.

mod asking;
mod bare;
mod bundle;
mod cell;
mod check;
mod child;
mod config;
mod create;
mod devices;
mod ended;
mod executor;
pub(crate) mod freezer;
mod grants;
mod groups;
mod image_user;
mod log;
mod magic_links;
mod making;
mod own_image;
mod paths;
pub(crate) mod podman;
mod program;
mod record;
mod root;
mod runtime;
mod spec;
mod start;

pub use asking::{Asking, Looks};
pub use bundle::{Bundle, BundleError};
pub use cell::AppCell;
pub use check::{check_image, check_program};
pub use create::{Adoption, adopt, create, requirements, unmet};
pub use ended::{Ended, become_subreaper};
pub use freezer::Freezing;
pub use grants::{Grants, Scheduling, Seccomp};
pub use image_user::image_user;
pub use log::{DRAINED_BYTES, Log};
pub use making::{Launcher, Streams};
pub use podman::knows as podman_knows;
pub use spec::{Access, AppSpec, Bind, Device, Ids, Image, Limits, Network, Tmpfs};

pub(crate) use child::{APP, child};
