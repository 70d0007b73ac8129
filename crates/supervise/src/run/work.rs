//! Slow work on threads beside the supervisor's own: creating, removing and freezing a cell. Each such step has its own
//! thread, so that a cell that hangs in it delays no other reaction; the loop fetches the results.

use std::collections::BTreeMap;
use std::os::fd::RawFd;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use engine::app::Freezing;

use super::ballast::Ballast;
use super::cell::{Live, remove_page, sweep};
use super::making::Making;
use super::options::OutputTo;
use super::output::Output;
use super::waker::Waker;
use crate::end::End;
use crate::enforce::{EnforceError, Mechanisms, Step};
use crate::incident::OutputTail;
use crate::reserve::{Member, Reserve};

/// How long a cell's start is waited for before the next one's begins, ns: they come one after the other, but one that hangs
/// keeps nobody else.
const IN_TURN_NS: i64 = 1_000_000_000;

/// How long the supervisor itself waits for a step that is seldom slow: for a cell to freeze, for its enforcer to
/// release it.
pub(super) const AT_ONCE: Duration = Duration::from_millis(2);

/// The reason to change a mission's reservations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Why {
    /// Room for the cells that an update starts.
    Grows,
    /// Room of cells that an update has replaced is given back.
    Finishes,
    /// Room of an update that was taken back is given back.
    TakenBack,
}

/// Whether they do, one change at a time, or the result of the last.
#[derive(Debug, Default)]
pub(super) enum Fitting {
    #[default]
    Idle,
    UnderWay,
    /// Why it was, and whether nothing unneeded is left; a sentence why not.
    Came(Why, Result<bool, String>),
}

impl Fitting {
    pub(super) fn is_under_way(&self) -> bool {
        matches!(self, Fitting::UnderWay)
    }

    pub(super) fn came(&mut self, why: Why, result: Result<bool, String>) {
        *self = Fitting::Came(why, result);
    }

    /// The result of a change for this, once; that of another one says nothing of it.
    pub(super) fn take(&mut self, wanted: Why) -> Option<Result<bool, String>> {
        match std::mem::take(self) {
            Fitting::Came(why, result) if why == wanted => Some(result),
            Fitting::UnderWay => {
                *self = Fitting::UnderWay;
                None
            }
            Fitting::Came(..) | Fitting::Idle => None,
        }
    }
}

/// The outcome of a step.
pub(super) enum Done {
    Started {
        cell: String,
        generation: u64,
        result: Result<Box<Live>, String>,
    },
    Removed {
        cell: String,
        generation: u64,
        /// How it ended, where only its engine could tell.
        end: Option<End>,
        tail: Option<OutputTail>,
        /// Failed removals, as sentences.
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
    /// The mechanisms keep the right reservations, and whether nothing else is left.
    Fitted {
        why: Why,
        result: Result<bool, String>,
    },
}

/// Steps that are under way.
pub(super) struct Work {
    /// The cell of those that are started one after the other whose turn it is, until it was made, and when it was begun, CLOCK_MONOTONIC ns.
    pub(super) in_turn: Option<(String, i64)>,
    /// When the turn was last checked, CLOCK_MONOTONIC ns.
    turn_seen_ns: i64,
    /// Lives of cells that an earlier supervisor has left and that are cleared, and whether each was in the second of its places.
    pub(super) clearing: BTreeMap<(String, u64), bool>,
    /// The mechanisms' reservations, as they are being changed.
    pub(super) fitting: Fitting,
    waker: Waker,
    done: Receiver<Done>,
    hand_in: Sender<Done>,
    /// Where the output of cells goes.
    pub(super) output_to: OutputTo,
    output: Output,
    ballast: Ballast,
    /// The supervisor's own reservation, and the part of its loop in it.
    pub(super) reserve: Reserve,
    pub(super) member: Member,
}

impl Work {
    pub(super) fn new(waker: Waker, output: Output, ballast: Ballast, reserve: Reserve) -> Work {
        let (hand_in, done) = channel();
        Work {
            in_turn: None,
            turn_seen_ns: 0,
            clearing: BTreeMap::new(),
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

    /// A descriptor to sleep on: readable when a step has an outcome.
    pub(super) fn fd(&self) -> RawFd {
        self.waker.fd()
    }

    pub(super) fn output(&self) -> &Output {
        &self.output
    }

    /// Whether nothing is under way but the steps of the cells' phases.
    pub(super) fn is_idle(&self) -> bool {
        self.clearing.is_empty() && !self.fitting.is_under_way()
    }

    /// Whether the next of those that wait for their first start may be started at this instant, although others still are.
    pub(super) fn turn_has_come(&mut self, now_ns: i64) -> bool {
        self.turn_seen_ns = now_ns;
        self.next_turn().is_none_or(|next| next <= now_ns)
    }

    /// When [`Work::turn_has_come`] is to be asked again, CLOCK_MONOTONIC ns. Once it has been seen to have come, only a cell that
    /// is ready or ends changes anything; one that has come since is not lost.
    pub(super) fn asks_for_turn_ns(&self) -> Option<i64> {
        self.next_turn().filter(|next| *next > self.turn_seen_ns)
    }

    fn next_turn(&self) -> Option<i64> {
        let (_, began_ns) = self.in_turn.as_ref()?;
        Some(began_ns.saturating_add(IN_TURN_NS))
    }

    /// Generation of a life of this cell that is cleared.
    pub(super) fn clears(&self, cell: &str) -> Option<u64> {
        let mut lives = self.clearing.keys().rev();
        (lives.find(|(name, _)| name == cell)).map(|(_, generation)| *generation)
    }

    /// The outcomes since the last time.
    pub(super) fn fetch(&mut self) -> Vec<Done> {
        self.waker.was_woken();
        self.done.try_iter().collect()
    }

    /// The room that is held for starts.
    pub(super) fn ballast(&self) -> &Ballast {
        &self.ballast
    }

    pub(super) fn start(&self, before: impl FnOnce() + Send + 'static, making: Making) {
        let (cell, generation) = (making.cell.name.clone(), making.generation);
        let ballast = self.ballast.clone();
        self.hand_out(move || {
            before();
            ballast.release();
            let made = making.make();
            ballast.hold();
            Done::Started {
                cell,
                generation,
                result: made.map(Box::new),
            }
        });
    }

    pub(super) fn remove(&self, cell: String, generation: u64, mut live: Live) {
        live.unfreeze();
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

    /// Clears the remains of a cell that nobody watches.
    pub(super) fn clear(&mut self, cell: String, generation: u64, beside: bool, what: Clearing) {
        self.clearing.insert((cell.clone(), generation), beside);
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
            result: freezing.finish(&unwanted).map_err(|why| why.to_string()),
        });
    }

    /// Has a step done that holds a cell or lets it go. Returns its result, if it is done at once, within 2 ms; else that is fetched
    /// as [`Done::Stepped`].
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

    /// Has the mechanisms' reservations changed by this step. Returns its result, if it is done at once, within 2 ms; else that is
    /// fetched as [`Done::Fitted`].
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

    /// The result of a step, if it is done at once; else that is fetched as the outcome that `done` makes of it.
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

/// Where the remains of a cell lie.
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
        work.in_turn = Some(("a".to_owned(), 10));
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
        let refused = || EnforceError::Partition("it is refused".into());
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
        let clearing = Clearing {
            dir: dir.path().join("nothing"),
            page: dir.path().join("no-page"),
            mechanisms: Mechanisms::of("test"),
            place: "a".to_owned(),
        };
        work.clear("a".to_owned(), 3, false, clearing);
        assert_eq!((work.clears("a"), work.clears("b")), (Some(3), None));
        assert!(!work.is_idle());
        let done = loop {
            if let Some(done) = work.fetch().pop() {
                break done;
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        };
        assert!(matches!(done, Done::Removed { generation: 3, .. }));
    }

    #[test]
    fn a_lock_that_somebody_has_keeps_no_loop_waiting() {
        let dir = tempfile::tempdir().unwrap();
        let waker = Waker::new().unwrap();
        let output = Output::start(waker.clone()).unwrap();
        let ballast = Ballast::take(dir.path());
        let mut work = Work::new(waker, output, ballast, Reserve::default());
        let (give_back, locked) = channel::<()>();
        let change = move || {
            let _ = locked.recv();
            Ok(false)
        };
        assert_eq!(work.fit(Why::Grows, change), None);
        work.fitting = Fitting::UnderWay;
        // An update does not begin, nor does a mission end, while it may yet be done.
        assert!(!work.is_idle() && work.fitting.take(Why::Grows).is_none());
        drop(give_back);
        let (why, result) = loop {
            match work.fetch().pop() {
                Some(Done::Fitted { why, result }) => break (why, result),
                Some(_) => panic!("that was no such step"),
                None => std::thread::sleep(Duration::from_millis(1)),
            }
        };
        work.fitting.came(why, result);
        assert!(work.is_idle());
        assert_eq!(work.fitting.take(Why::Grows), Some(Ok(false)));
        assert_eq!(work.fitting.take(Why::Grows), None, "it is told once");
        let refused = || Err(EnforceError::Partition("it is refused".into()));
        let said = (0..20).find_map(|_| work.fit(Why::Grows, refused));
        assert!(said.unwrap().unwrap_err().contains("it is refused"));
    }

    #[test]
    fn what_came_of_a_change_for_something_else_says_nothing() {
        let mut fitting = Fitting::default();
        fitting.came(Why::Grows, Ok(true));
        assert_eq!(fitting.take(Why::Finishes), None);
        assert_eq!(fitting.take(Why::Grows), None);
    }
}
