//! Which system calls a cell is refused, and which are answered for it. Here live the tables of calls, the policy that follows from the cell's
//! grants, and its two forms: a program for the kernel, built without any native library, and the `linux.seccomp` of an OCI bundle. Where and when a
//! filter is installed is the engines' business.

mod calls;
mod families;
mod filter;
mod notify;
mod oci;
mod policy;

pub(crate) use filter::{Filter, is_supported};
pub(crate) use notify::{Answers, Listener, SCHEDULING};
pub(crate) use oci::profile;
pub(crate) use policy::policy;

/// A system call that is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// Its name in the kernel.
    pub(crate) name: &'static str,
    /// Its number on this architecture.
    pub(crate) number: i64,
    /// The caller's error number; 0: success, though nothing was done.
    pub(crate) errno: i32,
    /// It is refused if any of these holds; always, if there are none.
    pub(crate) when: &'static [When],
}

/// A condition on an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct When {
    /// Which argument, from 0.
    pub(crate) argument: u8,
    pub(crate) test: Test,
    /// A condition that must also hold of another argument.
    pub(crate) also: Option<&'static When>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Test {
    /// Of the low 32 bits, which are all that the kernel takes of these arguments: `argument & mask == value`.
    Masked { mask: u32, value: u32 },
    /// Of a pointer: it leads somewhere.
    NotNull,
}

impl When {
    pub(crate) const fn masked(argument: u8, mask: u32, value: u32) -> When {
        When {
            argument,
            test: Test::Masked { mask, value },
            also: None,
        }
    }

    pub(crate) const fn equal(argument: u8, value: i32) -> When {
        When::masked(argument, u32::MAX, value.cast_unsigned())
    }

    pub(crate) const fn and(self, also: &'static When) -> When {
        When {
            also: Some(also),
            ..self
        }
    }

    /// This condition and those that must hold with it.
    pub(crate) fn all(&self) -> impl Iterator<Item = &When> {
        std::iter::successors(Some(self), |when| when.also)
    }
}
