//! QEMU's threads that execute no virtual cpu: their class and cpus.

use guest::GuestError;
use guest::machine::Guest;
use host::sched::{self, Class, SchedError};
use model::{HelperClass, Helpers};

/// Puts them into their class, and on their cpus if there are some. Those that they make later inherit both.
///
/// # Errors
/// If the kernel, or the cell's filter, refuses it.
pub(crate) fn place(guest: &Guest, vcpus: &[i32], helpers: &Helpers) -> Result<(), GuestError> {
    let class = match helpers.class() {
        HelperClass::Other => Class::Other,
        HelperClass::Batch => Class::Batch,
        HelperClass::Idle => Class::Idle,
    };
    let mut done = vcpus.to_vec();
    // One that is not placed yet may have made another meanwhile.
    loop {
        let mut threads = host::process::threads(guest.pid());
        threads.retain(|thread| !done.contains(thread));
        if threads.is_empty() {
            return Ok(());
        }
        for thread in threads {
            done.push(thread);
            let placed = match helpers.cpus.as_slice() {
                [] => Ok(()),
                cpus => sched::set_affinity(thread, cpus),
            };
            match placed.and_then(|()| sched::set_class(thread, &class)) {
                // Workers come and go.
                Ok(()) | Err(SchedError::NoSuchProcess { .. }) => (),
                Err(error) => {
                    let what =
                        format!("QEMU's own threads do not get their class and cpus: {error}");
                    return Err(GuestError::unmet(what, "change `helpers` of the machine"));
                }
            }
        }
    }
}
