//! Takes threads out of real-time classes.

use host::sched::{self, Class, bandwidth};

use super::Inside;

/// How often threads are looked for that were made meanwhile.
const PASSES: usize = 100;

/// Takes every thread of a cell that is about to be killed out of its real-time class. Killed threads need cpu time to end:
/// in a real-time group that has used up its budget they would get it bit by bit, and a crowd of them would be there for
/// minutes. Of a thread that ends in SCHED_DEADLINE the kernel would count the bandwidth for another period, and lose count
/// altogether when cpusets change within it.
///
/// A thread created by one before its turn comes has its class too; the first pass that finds none is the last.
pub fn leave_real_time(inside: &Inside) {
    for _ in 0..PASSES {
        let mut found = false;
        for thread in inside.threads() {
            // A thread that has just ended needs nothing.
            found |= match sched::get_class(thread) {
                Ok(Class::Deadline { .. }) => bandwidth::leave(thread).is_ok(),
                Ok(class) if class.is_real_time() => {
                    sched::set_class(thread, &Class::Other).is_ok()
                }
                _ => false,
            };
        }
        if !found {
            return;
        }
    }
}
