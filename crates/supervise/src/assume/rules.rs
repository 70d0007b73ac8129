//! The list of the assumptions of bounds. An analysis that assumes more, or an enforcer that holds otherwise, adds to it here.

use host::cpus::format_list;
use host::rt_threads::RtThread;
use host::sched::Class;
use text::units::{exact, rounded_up, time};

use super::{Answered, Locked, Look, Proof, Standing};
use crate::threads::{ADVICE, Sign};

/// One assumption: its statement about a bound, and its check.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    /// Its name.
    pub name: &'static str,
    /// The assumption of this proof, a clause; `None`: it does not make it.
    pub says: fn(&Proof) -> Option<String>,
    /// Its check.
    pub check: Check,
}

/// How an assumption is checked.
#[derive(Debug, Clone, Copy)]
pub enum Check {
    /// By this, at each look.
    Looked(fn(&Proof, &Look<'_>) -> Standing),
    /// By nobody, and why, a clause.
    Never(&'static str),
}

impl Check {
    /// How it stands by a look.
    pub fn standing(self, proof: &Proof, look: &Look<'_>) -> Standing {
        match self {
            Check::Looked(check) => check(proof, look),
            Check::Never(why) => Standing::not_checked(why),
        }
    }
}

/// A supervisor that comes later than this to a look was kept from its cpu, ns.
pub const AWAY_NS: i64 = 1_000_000_000;

/// All of them. Those that explain others come first.
pub const RULES: &[Rule] = &[
    Rule {
        name: "supervisor",
        says: |proof| {
            Some(match proof.reserved {
                Some((budget, period)) => format!(
                    "the supervisor runs with its reservation of {} in every {}",
                    exact(budget),
                    exact(period)
                ),
                None => "the supervisor runs".to_owned(),
            })
        },
        check: Check::Looked(|proof, look| match look {
            Look { away_ns, .. } if *away_ns > AWAY_NS => Standing::found(format!(
                "the supervisor did not run for {}",
                time(*away_ns as f64)
            )),
            Look { is_reserved, .. } => match proof.reserved.is_some() && !is_reserved {
                true => Standing::found("the supervisor has lost its reservation"),
                false => Standing::Holds,
            },
        }),
    },
    Rule {
        name: "machine",
        says: |_| {
            Some("cpus and the kernel's limits of real time are as admission saw them".to_owned())
        },
        check: Check::Looked(|_, look| first(look.settings)),
    },
    Rule {
        name: "thread",
        says: |proof| {
            Some(match &proof.thread {
                Some(name) => {
                    format!("one thread runs it: `{name}`, or the one that begins its jobs")
                }
                None => "the first thread of its cell runs it".to_owned(),
            })
        },
        check: Check::Looked(|_, look| match look.thread {
            Ok(_) if look.is_stopped => Standing::found("a signal has stopped its process"),
            Ok((_, Sign::Order)) => Standing::not_checked(
                "its thread is known by order of appearance alone: name it so, or report its jobs",
            ),
            Ok(_) => Standing::Holds,
            Err(why) => Standing::found(format!("{why}; {ADVICE}")),
        }),
    },
    Rule {
        name: "class",
        says: |proof| {
            let class = proof.class.as_ref()?;
            Some(format!("its thread runs at {class}"))
        },
        check: Check::Looked(|proof, look| match (look.seen, &proof.class) {
            (Some(seen), Some(granted)) => match look.class {
                Some(class) if class != granted => Standing::found(format!(
                    "thread `{}` runs at {class}, admitted at {granted}",
                    seen.name.escape_debug()
                )),
                _ => Standing::Holds,
            },
            _ => Standing::Holds,
        }),
    },
    Rule {
        name: "cpus",
        says: |proof| {
            Some(format!(
                "its thread runs on cpu {} only",
                format_list(&proof.cpus)
            ))
        },
        check: Check::Looked(|proof, look| {
            match look.cpus.iter().all(|cpu| proof.cpus.contains(cpu)) {
                true => Standing::Holds,
                false => Standing::found(format!(
                    "its thread may run on cpu {}, admitted on {}",
                    format_list(look.cpus),
                    format_list(&proof.cpus)
                )),
            }
        }),
    },
    Rule {
        name: "group",
        says: |_| Some("its thread stays in the control groups of its cell".to_owned()),
        check: Check::Looked(|_, look| look.moved.map_or(Standing::Holds, Standing::found)),
    },
    Rule {
        name: "calls",
        says: |_| Some("its cell gets no other class or cpus by calls of its own".to_owned()),
        check: Check::Looked(|_, look| match look.answered {
            Answered::ByAgent | Answered::ByFilter => Standing::Holds,
            Answered::ByKernel => Standing::not_checked(
                "it has no seccomp filter: the effects of its calls are seen at the looks",
            ),
            Answered::ByNobody => Standing::Deviates {
                found: "the cell's agent is gone, and its calls fail from now on".to_owned(),
                for_good: true,
            },
        }),
    },
    Rule {
        name: "budget",
        says: |proof| {
            let (budget, period) = proof.budget?;
            Some(format!(
                "its cell gets {} in every {} and no more, held by {}",
                exact(budget),
                exact(period),
                proof.enforcer.name()
            ))
        },
        check: Check::Looked(|_, look| first(look.unheld)),
    },
    Rule {
        name: "siblings",
        says: |proof| {
            let lowest = proof.lowest?;
            Some(format!(
                "no other thread of its cell runs above FIFO {lowest}"
            ))
        },
        check: Check::Looked(|_, look| match look.stray {
            Some(found) => Standing::found(found),
            None => Standing::Holds,
        }),
    },
    Rule {
        name: "others",
        says: |proof| {
            let spare = exact(proof.spare_ns?);
            Some(format!(
                "threads of its cell that run no task use at most {spare} of its budget in two seconds"
            ))
        },
        check: Check::Looked(|proof, look| match proof.spare_ns {
            Some(_) if look.used_up => Standing::found(
                "the budget, which its tasks alone cannot use up, was used up; a thread that runs no task did, or a job took longer than its `wcet`",
            ),
            Some(spare) if look.others_ns > spare => Standing::found(format!(
                "threads of its cell that run no task have used {} of its budget; declare them as tasks, or give the cell a larger `reservation`",
                time(look.others_ns as f64)
            )),
            _ => Standing::Holds,
        }),
    },
    Rule {
        name: "above",
        says: |_| {
            Some(
                "no real-time thread of a program that admission does not know comes before it"
                    .to_owned(),
            )
        },
        check: Check::Looked(|proof, look| {
            let comes_before = |class: &str| match (class.split_once(' '), &proof.class) {
                (Some(_), Some(Class::Deadline { .. })) => false,
                (Some((_, priority)), Some(own)) => {
                    let priority = priority.parse::<u8>().ok();
                    own.priority().is_none_or(|own| priority >= Some(own))
                }
                _ => true,
            };
            let found = (look.outside.iter())
                .filter(|thread| thread.cpus.iter().any(|cpu| proof.cpus.contains(cpu)))
                .find(|thread| comes_before(&thread.class));
            found.map_or(Standing::Holds, |thread| {
                Standing::found(thread.to_string())
            })
        }),
    },
    Rule {
        name: "times",
        says: |proof| {
            Some(format!(
                "its jobs take at most {} of cpu time, one in every {}",
                exact(proof.wcet_ns.unsigned_abs()),
                exact(proof.period_ns.unsigned_abs())
            ))
        },
        check: Check::Looked(|_, look| match look.overran {
            Some(true) => Standing::found(
                "its thread has used more cpu time than its jobs may, at one in every period",
            ),
            Some(false) => Standing::Holds,
            None => Standing::not_checked("the kernel does not report its thread's cpu time"),
        }),
    },
    Rule {
        name: "responses",
        says: |proof| {
            Some(format!(
                "no job ends later than {}",
                rounded_up(proof.bound_ns)
            ))
        },
        check: Check::Looked(|proof, look| match look.worst_ns {
            None => Standing::not_checked("the application does not report its jobs"),
            Some(worst_ns) if worst_ns.unsigned_abs() > proof.bound_ns => {
                Standing::found(format!("a job took {}", exact(worst_ns.unsigned_abs())))
            }
            Some(_) => Standing::Holds,
        }),
    },
    Rule {
        name: "memory",
        says: |_| Some("its memory is locked: no page is read in while a job runs".to_owned()),
        check: Check::Looked(|_, look| match look.locked {
            Locked::Yes => Standing::Holds,
            Locked::Never => Standing::not_checked("its process has locked none (mlockall)"),
            Locked::NoMore => Standing::found("its process has unlocked its memory"),
        }),
    },
    Rule {
        name: "jobs",
        says: |proof| {
            Some(format!(
                "no single job takes longer than {}",
                exact(proof.wcet_ns.unsigned_abs())
            ))
        },
        check: Check::Never("the kernel counts cpu time by ticks, not by jobs"),
    },
    Rule {
        name: "blocking",
        says: |proof| {
            let most = proof.blocking_ns.unsigned_abs();
            Some(match most {
                0 => "less urgent work does not delay it".to_owned(),
                _ => format!("less urgent work delays it by at most {}", exact(most)),
            })
        },
        check: Check::Never("locks are not looked at"),
    },
    Rule {
        name: "latency",
        says: |proof| {
            Some(match proof.latency_ns {
                0 => "the kernel wakes it at once: no `latency` is declared".to_owned(),
                latency => format!("the kernel wakes it within {}", exact(latency)),
            })
        },
        check: Check::Never("wake-ups are not timed while a mission runs"),
    },
    Rule {
        name: "interrupts",
        says: |_| Some("interrupts take no time on its cpus beyond `latency`".to_owned()),
        check: Check::Never("the time of interrupts is not looked at"),
    },
    Rule {
        name: "kernel",
        says: |proof| {
            (!proof.kernel.is_empty()).then(|| {
                format!(
                    "the kernel's threads before it take no time beyond `latency`: {}",
                    threads(&proof.kernel)
                )
            })
        },
        check: Check::Never("their time is not looked at"),
    },
];

fn first(clauses: &[String]) -> Standing {
    clauses.first().map_or(Standing::Holds, Standing::found)
}

/// Those of one name and class together: `irq/24-nvme0q1 (FIFO 50, cpu 1)`.
fn threads(all: &[RtThread]) -> String {
    /// Most that are named.
    const NAMED: usize = 6;
    let named = all.iter().take(NAMED).map(|thread| {
        let cpus = format_list(&thread.cpus);
        format!(
            "{} ({}, cpu {cpus})",
            thread.name.escape_debug(),
            thread.class
        )
    });
    let mut named: Vec<String> = named.collect();
    if let more @ 1.. = all.len().saturating_sub(NAMED) {
        named.push(format!("{more} more"));
    }
    named.join(", ")
}
