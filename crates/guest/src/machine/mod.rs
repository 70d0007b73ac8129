//! Machines that run guests: the boards that come with timecell, how QEMU is told what to emulate ([`command`]), and a guest that
//! runs ([`guest`]), which is watched and asked. No QEMU outlives the process that started it.

mod boards;
mod command;
mod guest;
mod monitor;

pub use boards::{board, built_in};
pub use command::{Boots, takes_size};
pub(crate) use command::{host_name, tie};
pub use guest::{Booted, Guest, Input, Output, boot, carried_by_kvm, console, known_of_kvm};
