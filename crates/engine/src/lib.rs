//! The engines that make cells: one folder behind one trait and one list.
//!
//! An engine creates a cell that runs our own static binary or any application ([`app`]), reports its pid, kills it and
//! removes it. It measures nothing and decides nothing about scheduling; cpus and classes are up to the coordinator.

pub mod agent;
pub mod app;
mod attached;
mod cell;
mod cgroups;
mod child;
mod engines;
mod error;
mod footprint;
mod identity;
pub mod libraries;
mod limits;
mod made;
mod manager;
mod marks;
mod mounts;
mod note;
mod oci;
mod own_groups;
mod process;
mod programs;
mod reach;
pub mod rootfs;
mod run_command;
pub mod running;
mod seccomp;
mod sweep;
pub mod unit;
pub mod users;

pub use attached::attach;
pub use cell::{Cell, CellProcess, CellSpec, Engine, Rights, User};
pub use cgroups::{any_lives, memory_taken, remove_empty};
pub use child::child;
pub use engines::{
    Machine, Options, Steps, all, boot_command, by_kind, found, programs as programs_of,
};
pub use error::{EngineError, Error};
pub use footprint::Footprint;
pub use limits::may_lock;
pub use made::log_file;
pub use manager::{Form, Manager, Network, Source, forms, network_needs};
pub use marks::{cell_id_of, kill_marked, processes_of_many};
pub use programs::{
    find as find_program, is_program, requirement as program_requirement, root as root_requirement,
};
pub use run_command::{STAMPS, has_steps, payload_pid, run_command, stamps_file, step_commands};
pub use sweep::{is_left, sweep, sweep_many};

/// The example of the README, so that it is tested.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
