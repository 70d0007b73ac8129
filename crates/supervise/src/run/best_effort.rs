//! Shedding a cell to best effort, where its threads lose their classes, and giving these back. Whoever holds it lets it go first and holds it
//! again last, which may take seconds where nobody answers: that is waited for elsewhere.

use host::sched::{self, Class};
use model::mission::WhenShed;

use super::cell::Live;
use super::modes::{pids, threads};
use super::work::Work;
use super::{Event, Keeper};
use crate::process::start_of;

/// How often the threads of a cell are gone through that lose their class, at most.
const MOST_PASSES: u32 = 10;
/// How often it is told that threads of one cell have taken a class again: a journal must not be filled with that.
const TOLD: u32 = 20;
/// In so many looks in a row, 0.1 s apart, threads of a cell have a class again before it is stopped.
const MOST_LOOKS: u32 = 100;

const AGAIN_AND_AGAIN: &str = "its threads get a real-time class again and again";

/// How often the threads of a cell that is shed have taken a class again.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Retaken {
    /// Looks that have found some.
    looks: u32,
    /// Those since the last one that has found none.
    in_a_row: u32,
}

impl Retaken {
    /// So many threads had one this time: what is to be told of it. A cell that does not give up is an error, a clause.
    fn seen(&mut self, threads: usize) -> Result<Option<String>, String> {
        if threads == 0 {
            self.in_a_row = 0;
            return Ok(None);
        }
        self.looks = self.looks.saturating_add(1);
        self.in_a_row += 1;
        let what = format!(
            "{threads} of its threads had taken a real-time class while it is shed, and lost it again"
        );
        match (self.in_a_row, self.looks) {
            (MOST_LOOKS.., _) => Err(AGAIN_AND_AGAIN.to_owned()),
            (_, ..TOLD) => Ok(Some(what)),
            (_, TOLD) => Ok(Some(format!("{what}; this is not told again"))),
            _ => Ok(None),
        }
    }
}

/// What is under way with a cell that was shed to best effort, or comes back from there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Under {
    /// It is let go; then its threads lose their class.
    LettingGo,
    /// It is held again; then they get it back.
    Holding,
}

impl Keeper<'_> {
    /// Takes their real-time class from the threads of a cell, once it is let go; `None`: that takes longer, and is told then.
    pub(super) fn begin_best_effort(&mut self, at: usize) -> Option<Result<&'static str, String>> {
        let name = self.name(at);
        match self.live.get_mut(&at) {
            Some(live) => live.let_go(&name, &self.work),
            None => Some(Ok("it does not run")),
        }
    }

    /// The threads of a cell get back the class that they had, once it is held.
    pub(super) fn end_best_effort(&mut self, at: usize) {
        let name = self.name(at);
        let Some(live) = self.live.get_mut(&at) else {
            return;
        };
        if live.under.is_some() {
            return;
        }
        if let Some(step) = live.hold.as_mut().and_then(|hold| hold.unshed()) {
            live.under = Some(Under::Holding);
            let Some(done) = self.work.step(name, live.generation, step) else {
                return;
            };
            live.under = None;
            self.held_again(at, done);
            return;
        }
        self.goes_on(at);
    }

    /// What took longer is done: the cell goes on from there to where it is to be by now.
    pub(super) fn stepped(&mut self, cell: &str, generation: u64, result: Result<(), String>) {
        let leaving = self.desk.leaving.get_mut(cell);
        if let Some(leaving) = leaving.filter(|one| one.live.generation == generation) {
            if let Err(why) = leaving.live.stepped_aside(result) {
                self.stop_leaving(cell, &why);
            }
            return;
        }
        let at = self.mission().position(cell);
        let live = at.and_then(|at| Some((at, self.live.get_mut(&at)?)));
        let Some((at, live)) = live.filter(|(_, live)| live.generation == generation) else {
            return;
        };
        let Some(under) = live.under.take() else {
            return;
        };
        if live.told_until_ns.is_some() {
            return;
        }
        match (under, self.is_shed(at)) {
            (Under::LettingGo, true) => {
                let taken = result.and_then(|()| match self.live.get_mut(&at) {
                    Some(live) => live.take_classes(),
                    None => Ok(0),
                });
                self.tell_shed(at, taken.map(|_| "it goes on with what cpu time is left"));
            }
            (Under::LettingGo, false) => self.end_best_effort(at),
            (Under::Holding, true) => {
                if let Some(done) = self.begin_best_effort(at) {
                    self.tell_shed(at, done);
                }
            }
            (Under::Holding, false) => self.held_again(at, result),
        }
    }

    /// A cell that could not be held again goes on all the same: it is tried again, and told, as long as it runs.
    fn held_again(&mut self, at: usize, result: Result<(), String>) {
        if let Err(what) = result {
            let cell = self.name(at);
            (self.tell)(&Event::Left { cell, what });
        }
        self.goes_on(at);
    }

    /// The threads of a cell cannot get back what they had, which whoever took it from them knew and is gone: it is started anew.
    pub(super) fn begin_anew(&mut self, at: usize) {
        let cell = self.name(at);
        self.tell_to_end(at);
        self.due.insert(at, timecell_client::now_ns());
        (self.tell)(&Event::Held {
            cell,
            what: "is shed no more, and is started anew: which classes its threads had went with the supervisor that took them"
                .to_owned(),
        });
    }

    /// A thread that has taken a real-time class again while its cell is shed loses it once more. What comes back after its version was put
    /// aside goes on if it is shed no more.
    pub(super) fn keep_to_best_effort(&mut self) {
        let now_ns = timecell_client::now_ns();
        let back = self.live.iter().filter(|(at, live)| {
            let goes_on = live.under.is_none() && live.told_until_ns.is_none();
            goes_on && live.is_best_effort && !self.is_shed(**at)
        });
        let back = back.map(|(at, live)| (*at, live.forgotten));
        for (at, is_forgotten) in back.collect::<Vec<(usize, bool)>>() {
            match is_forgotten {
                true => self.begin_anew(at),
                false => self.end_best_effort(at),
            }
        }
        let due = self.live.iter().filter(|(at, live)| {
            live.under != Some(Under::Holding)
                && live.told_until_ns.is_none()
                && live.tended.is_due(now_ns)
                && self.mission().cells[**at].when_shed == WhenShed::BestEffort
                && self.is_shed(**at)
        });
        for at in due.map(|(at, _)| *at).collect::<Vec<usize>>() {
            let taken = self.live.get_mut(&at).map(Live::take_classes_again);
            match taken.unwrap_or(Ok(None)) {
                Ok(None) => {}
                Ok(Some(what)) => {
                    let cell = self.name(at);
                    (self.tell)(&Event::Held { cell, what });
                }
                Err(why) => self.tell_shed(at, Err(why)),
            }
        }
    }
}

impl Live {
    /// Has its threads lose their real-time class, once it is let go; `None`: that takes longer, and is fetched as [`super::work::Done::Stepped`].
    pub(super) fn let_go(
        &mut self,
        name: &str,
        work: &Work,
    ) -> Option<Result<&'static str, String>> {
        self.is_best_effort = true;
        // Also where whatever holds it needs nobody who looks after it.
        self.tended.look_now();
        if self.under.is_some() {
            // It goes on from there.
            return None;
        }
        if let Some(step) = self.hold.as_mut().and_then(|hold| hold.shed()) {
            // Threads of a real-time class that nobody holds may keep those from their cpu who are to say that they hold them no more.
            if let Err(why) = self.take_classes() {
                return Some(Err(why));
            }
            self.under = Some(Under::LettingGo);
            self.tended.look_now();
            let done = work.step(name.to_owned(), self.generation, step)?;
            self.under = None;
            if let Err(why) = done {
                return Some(Err(why));
            }
        }
        let taken = self.take_classes();
        Some(taken.map(|_| "it goes on with what cpu time is left"))
    }

    /// Takes their real-time class from all of its threads, and knows what each had; how many had one. One that keeps it is an error, a clause.
    pub(super) fn take_classes(&mut self) -> Result<usize, String> {
        let mut all = 0;
        // A thread that starts while the others are gone through has the class of the one that started it, and is found the next time.
        for _ in 0..MOST_PASSES {
            let had = without_class(&pids(self))?;
            if had.is_empty() {
                return Ok(all);
            }
            all += had.len();
            note(&mut self.classes, had);
        }
        Err(AGAIN_AND_AGAIN.to_owned())
    }

    /// Takes it from those that have one again: what is to be told of that. One pass, since the next look is not far.
    fn take_classes_again(&mut self) -> Result<Option<String>, String> {
        let had = without_class(&pids(self))?;
        let threads = had.len();
        note(&mut self.classes, had);
        // Those who held it give classes back once more while they let go: that is not the cell's doing.
        match self.under {
            Some(_) => Ok(None),
            None => self.retaken.seen(threads),
        }
    }

    /// Goes on, put aside as it is, from where something that took longer is done. Whom nobody holds any more loses its class here too; where
    /// that fails, a clause, it must not go on.
    fn stepped_aside(&mut self, result: Result<(), String>) -> Result<(), String> {
        match self.under.take() {
            Some(Under::LettingGo) if self.told_until_ns.is_none() => {
                result.and_then(|()| self.take_classes()).map(drop)
            }
            // Where it comes back, it goes on from there.
            _ => Ok(()),
        }
    }

    pub(super) fn give_classes_back(&mut self) {
        self.is_best_effort = false;
        self.retaken = Retaken::default();
        for thread in std::mem::take(&mut self.classes) {
            thread.give_back();
        }
    }
}

/// What a thread had last is what it gets back.
fn note(known: &mut Vec<WithoutClass>, had: Vec<WithoutClass>) {
    let is_same = |one: &WithoutClass, other: &WithoutClass| {
        (one.thread, one.start_ticks) == (other.thread, other.start_ticks)
    };
    known.retain(|one| !had.iter().any(|other| is_same(one, other)));
    known.extend(had);
}

/// A thread that has lost its class for now, and what it had.
#[derive(Debug)]
pub(super) struct WithoutClass {
    thread: i32,
    /// Who has its number later is another one.
    start_ticks: u64,
    class: Class,
    resets_on_fork: bool,
}

impl WithoutClass {
    /// One that has ended needs none.
    fn give_back(&self) {
        if start_of(self.thread) != Some(self.start_ticks) {
            return;
        }
        // The kernel takes no thread of SCHED_DEADLINE that forks others of its class.
        let _ = match self.resets_on_fork || matches!(self.class, Class::Deadline { .. }) {
            true => sched::set_class_reset_on_fork(self.thread, &self.class),
            false => sched::set_class(self.thread, &self.class),
        };
    }
}

/// Takes their real-time class from all threads of these processes; what each of them had. A thread that keeps it is an error, a
/// clause.
fn without_class(pids: &[i32]) -> Result<Vec<WithoutClass>, String> {
    let mut had = Vec::new();
    for thread in pids.iter().flat_map(|pid| threads(*pid)) {
        // A thread that has just ended needs no class.
        let (Some(start_ticks), Ok((class, resets_on_fork))) =
            (start_of(thread), sched::get_class_and_reset(thread))
        else {
            continue;
        };
        let left = match class {
            Class::Deadline { .. } => sched::bandwidth::leave(thread),
            _ if class.is_real_time() => sched::set_class(thread, &Class::Other),
            _ => continue,
        };
        match left {
            Ok(_) => had.push(WithoutClass {
                thread,
                start_ticks,
                class,
                resets_on_fork,
            }),
            Err(_) if start_of(thread) != Some(start_ticks) => {}
            Err(error) => return Err(format!("thread {thread} keeps its class: {error}")),
        }
    }
    Ok(had)
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command};

    use super::*;

    /// A process of one thread of class FIFO; `None`: this one may not have such.
    fn child(resets_on_fork: bool) -> Option<(Child, i32)> {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let pid = child.id().cast_signed();
        let class = Class::Fifo { priority: 1 };
        let given = match resets_on_fork {
            true => sched::set_class_reset_on_fork(pid, &class),
            false => sched::set_class(pid, &class),
        };
        if given.is_err() {
            end(&mut child);
            return None;
        }
        Some((child, pid))
    }

    fn end(child: &mut Child) {
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn a_class_comes_back_as_it_was() {
        for resets in [false, true] {
            let Some((mut child, pid)) = child(resets) else {
                return;
            };
            let had = without_class(&[pid]).unwrap();
            assert_eq!(sched::get_class(pid), Ok(Class::Other));
            assert!(without_class(&[pid]).unwrap().is_empty());
            had[0].give_back();
            let class = Class::Fifo { priority: 1 };
            assert_eq!(sched::get_class_and_reset(pid), Ok((class, resets)));
            end(&mut child);
        }
    }

    #[test]
    fn a_number_that_another_thread_has_by_now_gets_no_class() {
        let Some((mut child, pid)) = child(false) else {
            return;
        };
        let mut had = without_class(&[pid]).unwrap();
        had[0].start_ticks -= 1;
        had[0].give_back();
        assert_eq!(sched::get_class(pid), Ok(Class::Other));
        end(&mut child);
    }

    #[test]
    fn a_thread_that_keeps_its_class_is_told() {
        let Some((mut child, pid)) = child(false) else {
            return;
        };
        // A thread that is not root's may not take it from one that is.
        let refused = std::thread::spawn(move || {
            // SAFETY: no memory is involved; the call itself is of one thread, other than the C library's.
            let changed = unsafe { libc::syscall(libc::SYS_setresuid, -1, 65_534, -1) };
            (changed == 0).then(|| without_class(&[pid]))
        });
        if let Some(refused) = refused.join().unwrap() {
            let why = refused.unwrap_err();
            assert!(
                why.contains(&format!("thread {pid} keeps its class")),
                "{why}"
            );
        }
        end(&mut child);
    }

    #[test]
    fn a_cell_that_takes_its_class_again_is_told_of_so_often_and_stopped_in_the_end() {
        let mut retaken = Retaken::default();
        let told = |retaken: &mut Retaken, looks: u32| {
            let all = (0..looks).map(|_| retaken.seen(2).unwrap());
            all.flatten().collect::<Vec<String>>()
        };
        let first = told(&mut retaken, MOST_LOOKS - 1);
        assert_eq!(first.len(), 20);
        assert!(first[18].ends_with("lost it again"), "{}", first[18]);
        assert!(first[19].ends_with("not told again"), "{}", first[19]);
        // One that has stopped for a while has time again, and is told of no more.
        assert_eq!(retaken.seen(0), Ok(None));
        assert!(told(&mut retaken, MOST_LOOKS - 1).is_empty());
        assert!(retaken.seen(1).unwrap_err().contains("again and again"));
    }

    #[test]
    fn a_thread_gets_back_what_it_had_last() {
        let had = |thread: i32, start_ticks: u64, priority: u8| WithoutClass {
            thread,
            start_ticks,
            class: Class::Fifo { priority },
            resets_on_fork: false,
        };
        let mut known = vec![had(1, 5, 10), had(2, 6, 10)];
        note(&mut known, vec![had(2, 6, 20), had(1, 7, 20)]);
        let known: Vec<_> = known
            .iter()
            .map(|one| (one.thread, one.class.clone()))
            .collect();
        let class = |priority| Class::Fifo { priority };
        assert_eq!(known, [(1, class(10)), (2, class(20)), (1, class(20))]);
    }
}
