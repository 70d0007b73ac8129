//! What may take long, on threads beside the supervisor's own: making, removing and freezing a cell. One thread for each
//! such step, so that a cell that hangs in it costs nobody else a reaction; what has come out is fetched by the loop.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use engine::app::Freezing;

use super::OutputTo;
use super::ballast::Ballast;
use super::cell::{Live, remove_page, sweep};
use super::fit::{Fitting, Why};
use super::making::{Made, Making};
use super::output::Output;
use crate::cause::Cause;
use crate::end::End;
use crate::enforce::{EnforceError, Mechanisms, Step};
use crate::incident::OutputTail;
use crate::reserve::{Member, Reserve};

/// How long a cell's start is waited for before the next one's begins, ns: they come one after the other, but one that hangs
/// keeps nobody else.
const IN_TURN_NS: i64 = 1_000_000_000;

/// How long the supervisor itself waits for a step that is seldom slow: for a cell to stand still, for whoever holds it to let it go.
pub(super) const AT_ONCE: Duration = Duration::from_millis(2);

/// Wakes the loop from another thread.
#[derive(Debug, Clone)]
pub(super) struct Waker(Arc<OwnedFd>);

impl Waker {
    pub(super) fn new() -> io::Result<Waker> {
        // SAFETY: no memory is involved; a descriptor that is not negative is ours.
        unsafe {
            match libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) {
                fd if fd >= 0 => Ok(Waker(Arc::new(OwnedFd::from_raw_fd(fd)))),
                _ => Err(io::Error::last_os_error()),
            }
        }
    }

    pub(super) fn wake(&self) {
        let one = 1_u64;
        // A counter that is full wakes as well.
        // SAFETY: eight bytes on the stack.
        unsafe { libc::write(self.0.as_raw_fd(), (&raw const one).cast(), 8) };
    }

    /// Whether it was woken since the last time.
    pub(super) fn was_woken(&self) -> bool {
        let mut count = 0_u64;
        // SAFETY: eight bytes on the stack.
        unsafe { libc::read(self.0.as_raw_fd(), (&raw mut count).cast(), 8) == 8 }
    }

    /// Readable once woken.
    pub(super) fn fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

/// A cell that is being made.
#[derive(Debug, Clone, Copy)]
pub(super) struct Starting {
    pub(super) generation: u64,
    pub(super) beside: bool,
    pub(super) began_ns: i64,
    /// The signal by which it is to end as soon as it runs; `None`: it may run.
    pub(super) ends_by: Option<i32>,
}

/// A cell whose program has ended or is killed now, and which is taken down.
#[derive(Debug, Clone)]
pub(super) struct Removing {
    pub(super) end: End,
    /// Why, as far as is known.
    pub(super) cause: Option<Cause>,
    /// Whether its end was asked for.
    pub(super) asked: bool,
    pub(super) beside: bool,
    /// Whether it is a version that an update has put aside.
    pub(super) put_aside: bool,
    /// Whether it had ended when an earlier supervisor's cells were looked for.
    pub(super) cleared: bool,
}

/// What has come out of a step.
pub(super) enum Done {
    Started {
        cell: String,
        result: Result<Box<Made>, String>,
    },
    Removed {
        cell: String,
        generation: u64,
        /// How it ended, where only its engine could tell.
        end: Option<End>,
        tail: Option<OutputTail>,
        /// What could not be removed, as sentences.
        left: Vec<String>,
    },
    /// Stopped where it stands; `Ok(false)`: it was not wanted any more.
    Frozen {
        cell: String,
        generation: u64,
        result: Result<bool, String>,
    },
    /// Let go, or held again.
    Stepped {
        cell: String,
        generation: u64,
        result: Result<(), String>,
    },
    /// What the mechanisms keep fits what it was to, and whether nothing else is left.
    Fitted {
        why: Why,
        result: Result<bool, String>,
    },
}

/// Steps that are under way.
pub(super) struct Work {
    pub(super) starting: BTreeMap<String, Starting>,
    /// The cell of those that are started one after the other whose turn it is, until it was made.
    pub(super) in_turn: Option<String>,
    /// When it was last seen whose turn has come, CLOCK_MONOTONIC ns.
    turn_seen_ns: i64,
    /// By name and generation: an update may have two versions of a cell removed.
    pub(super) removing: BTreeMap<(String, u64), Removing>,
    /// What the mechanisms keep, as it is being changed.
    pub(super) fitting: Fitting,
    waker: Waker,
    done: Receiver<Done>,
    hand_in: Sender<Done>,
    /// Where what cells write goes.
    pub(super) output_to: OutputTo,
    output: Output,
    ballast: Ballast,
    /// What the supervisor has reserved for itself, and the part of its loop in it.
    pub(super) reserve: Reserve,
    pub(super) member: Member,
}

impl Work {
    pub(super) fn new(waker: Waker, output: Output, ballast: Ballast, reserve: Reserve) -> Work {
        let (hand_in, done) = channel();
        Work {
            starting: BTreeMap::new(),
            in_turn: None,
            turn_seen_ns: 0,
            removing: BTreeMap::new(),
            fitting: Fitting::default(),
            waker,
            done,
            hand_in,
            output,
            output_to: OutputTo::Log,
            ballast,
            member: reserve.join(),
            reserve,
        }
    }

    /// What to sleep on: readable when something has come out.
    pub(super) fn fd(&self) -> RawFd {
        self.waker.fd()
    }

    pub(super) fn output(&self) -> &Output {
        &self.output
    }

    /// Whether nothing is under way.
    pub(super) fn is_idle(&self) -> bool {
        self.starting.is_empty() && self.removing.is_empty() && !self.fitting.is_under_way()
    }

    /// Whether the next of those that wait for their first start may be started at this instant, although others still are.
    pub(super) fn turn_has_come(&mut self, now_ns: i64) -> bool {
        self.turn_seen_ns = now_ns;
        self.next_turn().is_none_or(|next| next <= now_ns)
    }

    /// When [`Work::turn_has_come`] is to be asked again, CLOCK_MONOTONIC ns. Once it has been seen to have come, only what is ready
    /// or ends changes anything; one that has come since is not lost.
    pub(super) fn asks_for_turn_ns(&self) -> Option<i64> {
        self.next_turn().filter(|next| *next > self.turn_seen_ns)
    }

    fn next_turn(&self) -> Option<i64> {
        let last = self.starting.get(self.in_turn.as_ref()?)?;
        Some(last.began_ns.saturating_add(IN_TURN_NS))
    }

    /// Whether this cell is being made or taken down; one that was put aside is another.
    pub(super) fn is_at(&self, cell: &str) -> bool {
        self.starting.contains_key(cell) || self.removing_of(cell).is_some()
    }

    /// Generation and end of this cell's present version that is taken down.
    pub(super) fn removing_of(&self, cell: &str) -> Option<(u64, &Removing)> {
        let of = self.removing.iter().rev();
        of.filter(|((name, _), removing)| name == cell && !removing.put_aside)
            .map(|((_, generation), removing)| (*generation, removing))
            .next()
    }

    /// The version of this cell that an update has put aside and that is taken down.
    pub(super) fn put_aside_of(&self, cell: &str) -> Option<&Removing> {
        let mut of = self.removing.iter();
        of.find(|((name, _), removing)| name == cell && removing.put_aside)
            .map(|(_, removing)| removing)
    }

    /// The end of this cell was asked for, whatever is being done with it.
    pub(super) fn ask_for_end(&mut self, cell: &str) {
        self.ask_for_end_by(libc::SIGTERM, cell);
    }

    /// The same by another signal; the first that was asked for counts.
    pub(super) fn ask_for_end_by(&mut self, signal: i32, cell: &str) {
        if let Some(starting) = self.starting.get_mut(cell) {
            starting.ends_by.get_or_insert(signal);
        }
        for ((name, _), removing) in &mut self.removing {
            if name == cell && !removing.put_aside {
                removing.asked = true;
            }
        }
    }

    /// What has come out since the last time.
    pub(super) fn fetch(&mut self) -> Vec<Done> {
        self.waker.was_woken();
        self.done.try_iter().collect()
    }

    /// The room that is held for starts.
    pub(super) fn ballast(&self) -> &Ballast {
        &self.ballast
    }

    pub(super) fn start(
        &mut self,
        starting: Starting,
        before: impl FnOnce() + Send + 'static,
        making: Making,
    ) {
        let cell = making.cell.name.clone();
        self.starting.insert(cell.clone(), starting);
        let ballast = self.ballast.clone();
        self.hand_out(move || {
            before();
            ballast.release();
            let made = making.make();
            ballast.hold();
            Done::Started {
                cell,
                result: made.map(Box::new),
            }
        });
    }

    pub(super) fn remove(&mut self, cell: String, mut live: Live, removing: Removing) {
        let generation = live.generation;
        self.removing.insert((cell.clone(), generation), removing);
        let (output, ballast) = (self.output.clone(), self.ballast.clone());
        self.hand_out(move || {
            // A full disk costs the output, which was told when it was drained before.
            if let Some(log) = output.take_back(&cell, generation) {
                live.app.take_back_log(log);
            }
            let _ = live.drain();
            let tail = live.output_tail();
            let (end, left) = live.remove();
            ballast.hold();
            Done::Removed {
                cell,
                generation,
                end,
                tail,
                left,
            }
        });
    }

    /// Clears what is left of a cell that nobody watches.
    pub(super) fn clear(
        &mut self,
        cell: String,
        generation: u64,
        removing: Removing,
        what: Clearing,
    ) {
        self.removing.insert((cell.clone(), generation), removing);
        self.hand_out(move || {
            let swept = sweep(&what.dir);
            let page = remove_page(&what.page);
            what.mechanisms.forget(&what.place);
            Done::Removed {
                cell,
                generation,
                end: None,
                tail: None,
                left: swept.into_iter().chain(page).collect(),
            }
        });
    }

    /// Waits for a cell to stand still, as long as that is wanted.
    pub(super) fn freeze(
        &self,
        cell: String,
        generation: u64,
        freezing: Freezing,
        unwanted: Arc<AtomicBool>,
    ) {
        self.hand_out(move || Done::Frozen {
            cell,
            generation,
            result: freezing.finish(&unwanted),
        });
    }

    /// Has a step done that holds a cell or lets it go. What came of it, if it is done at once, within 2 ms; else that is fetched as
    /// [`Done::Stepped`].
    pub(super) fn step(
        &self,
        cell: String,
        generation: u64,
        step: Step,
    ) -> Option<Result<(), String>> {
        self.soon(
            move || step().map_err(|error| error.to_string()),
            move |result| Done::Stepped {
                cell,
                generation,
                result,
            },
        )
    }

    /// Has what the mechanisms keep changed by this step. What came of it, if it is done at once, within 2 ms; else that is fetched as
    /// [`Done::Fitted`].
    pub(super) fn fit(
        &self,
        why: Why,
        step: impl FnOnce() -> Result<bool, EnforceError> + Send + 'static,
    ) -> Option<Result<bool, String>> {
        self.soon(
            move || step().map_err(|error| error.to_string()),
            move |result| Done::Fitted { why, result },
        )
    }

    /// What comes of a step, if it is done at once; else that is fetched as what `done` makes of it.
    fn soon<T: Send + 'static>(
        &self,
        step: impl FnOnce() -> T + Send + 'static,
        done: impl FnOnce(T) -> Done + Send + 'static,
    ) -> Option<T> {
        let turn = Arc::new((Mutex::new(Turn::Awaited), Condvar::new()));
        let theirs = Arc::clone(&turn);
        self.hand_out_some(move || {
            let result = step();
            let mut turn = lock(&theirs.0);
            match *turn {
                Turn::Awaited => {
                    *turn = Turn::Done(result);
                    theirs.1.notify_one();
                    None
                }
                _ => Some(done(result)),
            }
        });
        let awaited = |turn: &mut Turn<T>| matches!(turn, Turn::Awaited);
        let waited = turn.1.wait_timeout_while(lock(&turn.0), AT_ONCE, awaited);
        let mut turn = waited.unwrap_or_else(PoisonError::into_inner).0;
        match std::mem::replace(&mut *turn, Turn::Left) {
            Turn::Done(result) => Some(result),
            Turn::Awaited | Turn::Left => None,
        }
    }

    fn hand_out(&self, step: impl FnOnce() -> Done + Send + 'static) {
        self.hand_out_some(move || Some(step()));
    }

    /// Does a step on a thread of its own. Where the system gives none, the step is done here, in the loop that calls: better late
    /// for all cells than never for this one, and for as long as the step takes (up to its own bound) nobody else gets a reaction.
    fn hand_out_some(&self, step: impl FnOnce() -> Option<Done> + Send + 'static) {
        let (waker, hand_in) = (self.waker.clone(), self.hand_in.clone());
        let reserve = self.reserve.clone();
        let whole = move || {
            if let Some(done) = step() {
                // Nobody is there to fetch it once the supervisor ends.
                let _ = hand_in.send(done);
                waker.wake();
            }
        };
        let slot = Arc::new(Mutex::new(Some(whole)));
        let theirs = Arc::clone(&slot);
        let take = |slot: &Mutex<Option<_>>| slot.lock().ok().and_then(|mut slot| slot.take());
        let thread = std::thread::Builder::new().name("timecell-work".to_owned());
        let spawned = thread.spawn(move || {
            let whole = theirs.lock().ok().and_then(|mut slot| slot.take());
            if let Some(whole) = whole {
                let _member = reserve.join_for_a_step();
                whole();
            }
        });
        if spawned.is_err()
            && let Some(whole) = take(&slot)
        {
            whole();
        }
    }
}

/// Whether a step is waited for.
enum Turn<T> {
    Awaited,
    /// It is done, and that is seen.
    Done(T),
    /// It is not waited for any more.
    Left,
}

fn lock<T>(turn: &Mutex<Turn<T>>) -> MutexGuard<'_, Turn<T>> {
    turn.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Where what is left of a cell lies.
pub(super) struct Clearing {
    pub(super) dir: PathBuf,
    pub(super) page: PathBuf,
    pub(super) mechanisms: Mechanisms,
    pub(super) place: String,
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn a_waker_wakes_once() {
        let waker = Waker::new().unwrap();
        assert!(!waker.was_woken());
        waker.clone().wake();
        waker.wake();
        assert!(waker.was_woken());
        assert!(!waker.was_woken());
    }

    fn no_work(dir: &Path) -> Work {
        let waker = Waker::new().unwrap();
        let output = Output::start(waker.clone()).unwrap();
        Work::new(waker, output, Ballast::take(dir), Reserve::default())
    }

    #[test]
    fn a_turn_that_comes_while_nobody_looks_is_not_lost() {
        let dir = tempfile::tempdir().unwrap();
        let mut work = no_work(dir.path());
        assert!(work.turn_has_come(5));
        let starting = Starting {
            generation: 1,
            beside: false,
            began_ns: 10,
            ends_by: None,
        };
        work.starting.insert("a".to_owned(), starting);
        work.ask_for_end_by(libc::SIGHUP, "a");
        work.ask_for_end("a");
        assert_eq!(work.starting["a"].ends_by, Some(libc::SIGHUP));
        work.in_turn = Some("a".to_owned());
        let next = 10 + IN_TURN_NS;
        assert!(!work.turn_has_come(next - 1));
        // However late that is asked.
        assert_eq!(work.asks_for_turn_ns(), Some(next));
        assert!(work.turn_has_come(next));
        assert_eq!(work.asks_for_turn_ns(), None);
    }

    #[test]
    fn a_step_that_is_slow_keeps_nobody_and_one_that_is_not_is_seen_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let mut work = no_work(dir.path());
        let refused = || EnforceError::Partition("it is refused".to_owned());
        let mut at_once = 0;
        for _ in 0..20 {
            let said = work.step("a".to_owned(), 1, Box::new(move || Err(refused())));
            match said {
                Some(said) => {
                    assert!(said.unwrap_err().contains("it is refused"));
                    at_once += 1;
                }
                // Where this machine stands still.
                None => drop(stepped(&mut work)),
            }
        }
        assert!(at_once > 0);
        let (go_on, waits) = std::sync::mpsc::channel::<()>();
        let slow: Step = Box::new(move || {
            let _ = waits.recv();
            Ok(())
        });
        assert_eq!(work.step("b".to_owned(), 7, slow), None);
        assert!(work.fetch().is_empty());
        drop(go_on);
        assert_eq!(stepped(&mut work), ("b".to_owned(), 7, Ok(())));
    }

    fn stepped(work: &mut Work) -> (String, u64, Result<(), String>) {
        loop {
            match work.fetch().pop() {
                Some(Done::Stepped {
                    cell,
                    generation,
                    result,
                }) => return (cell, generation, result),
                Some(_) => panic!("that was no such step"),
                None => std::thread::sleep(Duration::from_millis(1)),
            }
        }
    }

    #[test]
    fn a_step_comes_out_and_wakes() {
        let dir = tempfile::tempdir().unwrap();
        let mut work = no_work(dir.path());
        let removing = Removing {
            end: End::Unknown,
            cause: None,
            asked: true,
            beside: false,
            put_aside: false,
            cleared: true,
        };
        let clearing = Clearing {
            dir: dir.path().join("nothing"),
            page: dir.path().join("no-page"),
            mechanisms: Mechanisms::of("test"),
            place: "a".to_owned(),
        };
        work.clear("a".to_owned(), 3, removing, clearing);
        assert!(work.is_at("a") && !work.is_idle());
        let done = loop {
            if let Some(done) = work.fetch().pop() {
                break done;
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        };
        assert!(matches!(done, Done::Removed { generation: 3, .. }));
    }
}
