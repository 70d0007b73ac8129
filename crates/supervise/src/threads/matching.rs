//! Which thread runs which task: by the application's own word, else by name, else by order of appearance. Pure, and of one
//! instant: a match holds as long as every look finds it again.

use std::fmt;

/// A thread as it may run a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Candidate<'a> {
    /// Its process, and the instant of that process's start, by which older processes come first.
    pub(super) process: (u64, i32),
    /// The instant of its own start and its id: the older first.
    pub(super) born: (u64, i32),
    /// The kernel's name for it.
    pub(super) name: &'a str,
    /// The task whose jobs it begins, by the word of the application.
    pub(super) begins: Option<usize>,
    /// Whether it has, or has asked for, a real-time class.
    pub(super) is_real_time: bool,
    /// Whether it has asked for one.
    pub(super) has_asked: bool,
}

model::choice! {
    /// By which sign a thread is known to run a task.
    pub enum Sign: words {
        /// It begins the task's jobs, as the application reports.
        Jobs = "by its jobs",
        /// It alone has the name.
        Name = "by name",
        /// It is the first of the cell, which has one reservation for it.
        First = "the first",
        /// It is the n-th of as many real-time threads as there are tasks: an assumption, which nobody can check.
        Order = "by order, not checked",
    }
}

/// Why no thread is known to run a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unmatched {
    /// Nobody has looked yet.
    NotLooked,
    /// No thread has the name, and there are so many real-time threads for so many tasks.
    None {
        /// The name.
        name: String,
        /// Real-time threads that run no other task.
        threads: usize,
        /// Tasks without a thread.
        tasks: usize,
    },
    /// Several threads of one process have the name.
    Several {
        /// The name.
        name: String,
        /// How many.
        threads: usize,
    },
}

/// As a clause.
impl fmt::Display for Unmatched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unmatched::NotLooked => write!(f, "its threads have not been looked at yet"),
            Unmatched::Several { name, threads } => {
                write!(f, "{threads} threads have the name `{name}`")
            }
            Unmatched::None {
                name,
                threads,
                tasks,
            } => write!(
                f,
                "no thread has the name `{name}`, and order does not tell, with {threads} real-time thread{} for {tasks} task{}",
                if *threads == 1 { "" } else { "s" },
                if *tasks == 1 { "" } else { "s" },
            ),
        }
    }
}

/// For each task, by the name of its thread (`None`: the first of the cell), the place of its thread among these and how it is known. `by_order`: whether
/// the order of appearance counts; it does not in a program that has used names.
pub(super) fn matches(
    names: &[Option<&str>],
    threads: &[Candidate<'_>],
    by_order: bool,
) -> Vec<Result<(usize, Sign), Unmatched>> {
    let mut taken = vec![false; threads.len()];
    let mut found: Vec<Option<Result<(usize, Sign), Unmatched>>> = vec![None; names.len()];
    for (task, found) in found.iter_mut().enumerate() {
        let begins = |thread: &Candidate<'_>| thread.begins == Some(task);
        if let Some(place) = threads.iter().position(begins) {
            taken[place] = true;
            *found = Some(Ok((place, Sign::Jobs)));
        }
    }
    for (name, found) in names.iter().zip(&mut found) {
        if found.is_none() {
            *found = match name {
                Some(name) => of_name(name, threads, &taken),
                None => first(threads),
            };
            if let Some(Ok((place, _))) = found {
                taken[*place] = true;
            }
        }
    }
    let open: Vec<usize> = (0..names.len()).filter(|at| found[*at].is_none()).collect();
    let in_order = in_order(threads, &taken);
    let by_order = by_order
        && in_order.len() == open.len()
        && !found.iter().flatten().any(|found| match found {
            Ok((_, sign)) => matches!(sign, Sign::Name | Sign::Jobs),
            Err(_) => true,
        });
    for (at, task) in open.iter().enumerate() {
        found[*task] = Some(match by_order {
            true => Ok((in_order[at], Sign::Order)),
            false => Err(Unmatched::None {
                name: names[*task].unwrap_or_default().to_owned(),
                threads: in_order.len(),
                tasks: open.len(),
            }),
        });
    }
    found.into_iter().flatten().collect()
}

/// The first thread of the oldest process.
fn first(threads: &[Candidate<'_>]) -> Option<Result<(usize, Sign), Unmatched>> {
    let oldest =
        (threads.iter().enumerate()).min_by_key(|(_, thread)| (thread.process, thread.born));
    oldest.map(|(place, _)| Ok((place, Sign::First)))
}

/// The only thread of this name in the oldest process that has one: a child process begins with a copy of its parent's name.
fn of_name(
    name: &str,
    threads: &[Candidate<'_>],
    taken: &[bool],
) -> Option<Result<(usize, Sign), Unmatched>> {
    // Of the name of a virtual cpu's thread, the part behind the slash tells who executes it.
    let is_it = |of: &str| match name.ends_with('/') {
        true => of.starts_with(name),
        false => of == name,
    };
    let named = || {
        (threads.iter().enumerate()).filter(|(place, thread)| is_it(thread.name) && !taken[*place])
    };
    let oldest = named().map(|(_, thread)| thread.process).min()?;
    let own: Vec<usize> = (named().filter(|(_, thread)| thread.process == oldest))
        .map(|(place, _)| place)
        .collect();
    Some(match own[..] {
        [place] => Ok((place, Sign::Name)),
        _ => Err(Unmatched::Several {
            name: name.to_owned(),
            threads: own.len(),
        }),
    })
}

/// The threads of real-time classes in order of their appearance, of the oldest process that has some: those that have
/// asked for one, if any has. Others have only inherited theirs.
fn in_order(threads: &[Candidate<'_>], taken: &[bool]) -> Vec<usize> {
    let free = |asked: bool| {
        (threads.iter().enumerate()).filter(move |(place, thread)| {
            !taken[*place] && thread.is_real_time && (thread.has_asked || !asked)
        })
    };
    let asked = free(true).next().is_some();
    let Some(oldest) = free(asked).map(|(_, thread)| thread.process).min() else {
        return Vec::new();
    };
    let mut own: Vec<usize> = (free(asked).filter(|(_, thread)| thread.process == oldest))
        .map(|(place, _)| place)
        .collect();
    own.sort_by_key(|place| threads[*place].born);
    own
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thread(process: i32, tid: i32, name: &str) -> Candidate<'_> {
        Candidate {
            process: (process.unsigned_abs().into(), process),
            born: (tid.unsigned_abs().into(), tid),
            name,
            begins: None,
            is_real_time: true,
            has_asked: false,
        }
    }

    fn found(names: &[&str], threads: &[Candidate<'_>]) -> Vec<Result<(usize, Sign), Unmatched>> {
        let names: Vec<Option<&str>> = names.iter().copied().map(Some).collect();
        matches(&names, threads, true)
    }

    #[test]
    fn names_tell_whatever_the_order() {
        let threads = [
            thread(1, 1, "main"),
            thread(1, 3, "log"),
            thread(1, 2, "control"),
        ];
        let all = found(&["control", "log"], &threads);
        assert_eq!(all, [Ok((2, Sign::Name)), Ok((1, Sign::Name))]);
    }

    #[test]
    fn the_application_knows_best() {
        let mut threads = [thread(1, 1, "log"), thread(1, 2, "control")];
        threads[0].begins = Some(0);
        let all = found(&["control", "log"], &threads);
        assert_eq!(all[0], Ok((0, Sign::Jobs)));
        assert!(matches!(all[1], Err(Unmatched::None { .. })), "{all:?}");
    }

    #[test]
    fn two_of_one_name_are_none() {
        let threads = [thread(1, 1, "control"), thread(1, 2, "control")];
        let all = found(&["control"], &threads);
        let two = Unmatched::Several {
            name: "control".into(),
            threads: 2,
        };
        assert_eq!(all, [Err(two)]);
    }

    #[test]
    fn a_child_process_is_not_its_parent() {
        let threads = [thread(9, 9, "control"), thread(1, 2, "control")];
        assert_eq!(found(&["control"], &threads), [Ok((1, Sign::Name))]);
        // Nor does the parent keep the task when it ends: the child is another process, and matched as such.
        assert_eq!(found(&["control"], &threads[..1]), [Ok((0, Sign::Name))]);
    }

    #[test]
    fn as_many_as_tasks_are_taken_in_order() {
        let threads = [thread(1, 5, "x"), thread(1, 4, "x"), thread(2, 3, "y")];
        let all = found(&["a", "b"], &threads);
        assert_eq!(all, [Ok((1, Sign::Order)), Ok((0, Sign::Order))]);
        assert!(found(&["a"], &threads)[0].is_err());
        assert!(found(&["a", "b", "c"], &threads)[2].is_err());
        // Not in a program that has used names.
        assert!(matches(&[Some("a"), Some("b")], &threads, false)[0].is_err());
        let named = [thread(1, 5, "a"), thread(1, 4, "x")];
        assert!(found(&["a", "b"], &named)[1].is_err());
    }

    #[test]
    fn who_has_asked_comes_before_who_has_inherited() {
        let mut threads = [
            thread(1, 1, "main"),
            thread(1, 2, "main"),
            thread(1, 3, "main"),
        ];
        assert!(found(&["a", "b"], &threads)[0].is_err());
        threads[1].has_asked = true;
        threads[2].has_asked = true;
        let all = found(&["a", "b"], &threads);
        assert_eq!(all, [Ok((1, Sign::Order)), Ok((2, Sign::Order))]);
        threads[1].is_real_time = false;
        assert!(found(&["a", "b"], &threads)[0].is_err());
    }

    #[test]
    fn what_is_not_found_is_said() {
        let none = found(&["control"], &[thread(1, 1, "a"), thread(1, 2, "b")]);
        assert_eq!(
            none[0].as_ref().unwrap_err().to_string(),
            "no thread has the name `control`, and order does not tell, with 2 real-time threads for 1 task"
        );
    }
}
