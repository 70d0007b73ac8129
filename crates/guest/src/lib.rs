//! Guests: boards and machines that timecell boots to measure in them, without root. A kernel from a Debian package
//! ([`kernel`]), an initial file system made here ([`image`]), QEMU ([`machine`]), and a channel over a serial line
//! ([`channel`]). What runs inside is the same binary ([`inside`]). Machines that run already are reached by
//! [`remote`], over the same channel. What a guest is for is the caller's business.

mod apt;
mod bootable;
mod cache;
pub mod card;
pub mod channel;
mod cpio;
mod elf;
mod error;
mod fdt;
mod given;
pub mod image;
mod inside;
pub mod kernel;
pub mod machine;
pub mod modules;
mod packages;
mod partitions;
pub mod remote;
mod tail;
mod tree;

pub use apt::Package;
pub use cache::{Cache, digest};
pub use elf::{Program, program};
pub use error::GuestError;
pub use inside::{WORD, inside};
pub use modules::Module;

/// The example of the README, so that it is tested.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
