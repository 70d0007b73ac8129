//! Which system calls a cell is refused.

use super::calls::{
    CORE_LIMIT, INHERITANCE, INTERRUPTING, KEYRINGS, MACHINE, MOUNTS, NAMESPACES, PORTS,
    SECRET_MEMORY, SELDOM_USED, SET_AFFINITY, SET_ATTRIBUTES, SET_CLASS, SET_PRIORITY, SHARES,
    SOCKET_OPTIONS, UNCOUNTED,
};
use super::{Refusal, families};
use crate::app::{Grants, Network, Scheduling, Seccomp};

/// The system calls that a cell with these grants and this network is refused, each call once; empty: no filter is wanted.
pub(crate) fn policy(grants: &Grants, network: Network) -> Vec<Refusal> {
    let mut refused = Vec::new();
    if grants.seccomp == Seccomp::Off {
        return refused;
    }
    match grants.scheduling {
        Scheduling::FromOutside => {
            refused.extend([SET_CLASS, SET_PRIORITY, SET_ATTRIBUTES, SET_AFFINITY]);
            refused.extend(SHARES);
        }
        Scheduling::Granted(_) => refused.extend(SHARES),
        Scheduling::Any => {}
    }
    if !grants.priority_inheritance {
        refused.push(INHERITANCE);
    }
    refused.extend(NAMESPACES);
    refused.extend(MOUNTS);
    refused.extend(MACHINE);
    refused.extend(PORTS);
    refused.extend(families::refusals(network, grants.seccomp));
    refused.extend(KEYRINGS);
    refused.extend(INTERRUPTING);
    refused.extend(CORE_LIMIT);
    refused.extend([SOCKET_OPTIONS, SECRET_MEMORY]);
    if grants.seccomp == Seccomp::Default {
        refused.extend(SELDOM_USED);
        refused.extend(UNCOUNTED);
    }
    refused
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::app::{Granted, RealTime};

    fn names(grants: &Grants) -> BTreeSet<&'static str> {
        let refused = policy(grants, Network::None);
        let names: BTreeSet<_> = refused.iter().map(|refusal| refusal.name).collect();
        let numbers: BTreeSet<_> = refused.iter().map(|refusal| refusal.number).collect();
        assert_eq!(names.len(), refused.len(), "a call stands twice");
        assert_eq!(numbers.len(), refused.len(), "a number stands twice");
        names
    }

    #[test]
    fn grants_take_calls_off_the_list_and_nothing_else_does() {
        let all = names(&Grants::default());
        let granted = names(&Grants {
            scheduling: Scheduling::Granted(Granted {
                real_time: RealTime::ByTask,
                cpus: vec![0],
                held_in: None,
            }),
            ..Grants::default()
        });
        let answered = crate::seccomp::SCHEDULING.map(|(name, _)| name);
        assert_eq!(
            all.difference(&granted).copied().collect::<BTreeSet<_>>(),
            BTreeSet::from(answered)
        );
        let any = names(&Grants {
            scheduling: Scheduling::Any,
            priority_inheritance: true,
            ..Grants::default()
        });
        let given: Vec<_> = all.difference(&any).copied().collect();
        assert_eq!(
            given,
            [
                "futex",
                "ioprio_set",
                "prctl",
                "sched_setaffinity",
                "sched_setattr",
                "sched_setparam",
                "sched_setscheduler",
                "setpriority"
            ]
        );
        let cage = names(&Grants {
            seccomp: Seccomp::Cage,
            ..Grants::default()
        });
        assert!(cage.is_subset(&all) && cage.contains("mount") && !cage.contains("ptrace"));
        for call in [
            "socket",
            "io_uring_setup",
            "keyctl",
            "madvise",
            "memfd_secret",
        ] {
            assert!(cage.contains(call), "{call}");
        }
        assert!(
            names(&Grants {
                seccomp: Seccomp::Off,
                ..Grants::default()
            })
            .is_empty()
        );
    }
}
