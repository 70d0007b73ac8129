//! Writes a journal on a separate thread: a disk may be slow, and may be full. A caller that hands in an entry continues
//! at once; an action that must not happen before it is written waits for it ([`Written::wait`]), anywhere but in the
//! loop that others wait for.
//!
//! Entries that cannot be written are kept in memory and tried again, so that a full disk ends nothing. Actions
//! meanwhile are not in the journal: if the supervisor is killed then, the next one does not know of them.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::{Entry, Journal, JournalError};
use crate::reserve::Reserve;

/// Time between two tries of a failed write.
const AGAIN: Duration = Duration::from_secs(1);
/// Entries that are kept in memory; of more, the eldest are lost, and only the state that they add up to is written.
const MOST_KEPT: usize = 4096;

/// Messages to the thread.
enum Order<E> {
    Append(E),
    /// Put this in place of everything.
    Compact(E),
}

/// The fate of entries.
#[derive(Debug)]
pub enum Told<E> {
    /// An entry has this sequence number. It is written, or is kept in memory since the journal cannot be written.
    Noted(u64, Box<E>),
    /// From now on entries are kept in memory, for this reason.
    Stuck(String),
    /// One more entry is kept in memory.
    Kept,
    /// All that was kept is written, except entries beyond the limit.
    Written {
        /// Entries that are lost.
        lost: u64,
    },
    /// The journal should be compacted ([`Writer::compact`]).
    WantsSnapshot,
}

/// How a journal was left.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Left {
    /// Entries that are not in it, and why; `None`: it is whole.
    pub unwritten: Option<(u64, String)>,
}

/// Entries up to one: a handle that any thread can wait with.
#[derive(Debug, Clone)]
pub struct Written {
    shared: Arc<Shared>,
    mark: u64,
}

#[derive(Debug, Default)]
struct Shared {
    /// Entries that were seen to.
    done: Mutex<u64>,
    /// Those of them that are not written: kept in memory, or lost.
    unwritten: AtomicU64,
    more: Condvar,
}

impl Shared {
    fn done(&self) -> MutexGuard<'_, u64> {
        self.done.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Written {
    /// Waits until all entries up to this one are as durable as requested, or are known not to be writable.
    pub fn wait(&self) {
        let mut done = self.shared.done();
        while *done < self.mark {
            done = (self.shared.more.wait(done)).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// A journal that a thread writes.
pub struct Writer<E> {
    orders: Option<Sender<Order<E>>>,
    told: Receiver<Told<E>>,
    thread: Option<JoinHandle<(Journal<E>, Left)>>,
    shared: Arc<Shared>,
    handed_in: u64,
    /// Once the thread has ended: the journal with its lock.
    ended: Option<Journal<E>>,
}

impl<E: Entry + Send + 'static> Writer<E> {
    /// Begins to write; `wake` is called whenever there is something to fetch.
    ///
    /// Its writes are on the account of `reserve`: a cell that is made waits for it.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub(crate) fn start(
        journal: Journal<E>,
        reserve: Reserve,
        wake: impl Fn() + Send + 'static,
    ) -> std::io::Result<Writer<E>> {
        let (orders, to_do) = channel();
        let (tell, told) = channel();
        let shared = Arc::new(Shared::default());
        let clerk = Clerk {
            journal,
            tell: Box::new(move |what| {
                // Nobody is there to hear it at the end.
                let _ = tell.send(what);
                wake();
            }),
            shared: Arc::clone(&shared),
            kept: VecDeque::new(),
            stuck: None,
            lost: 0,
            tried: Instant::now(),
        };
        let thread = std::thread::Builder::new().name("timecell-journal".to_owned());
        Ok(Writer {
            orders: Some(orders),
            told,
            thread: Some(thread.spawn(move || clerk.work(&to_do, &reserve))?),
            shared,
            handed_in: 0,
            ended: None,
        })
    }

    /// Queues an entry.
    pub fn append(&mut self, entry: E) {
        self.handed_in += 1;
        self.order(Order::Append(entry));
    }

    /// Replaces everything by this one entry, which stands for all that was queued before.
    pub fn compact(&mut self, entry: E) {
        self.order(Order::Compact(entry));
    }

    fn order(&self, order: Order<E>) {
        if let Some(orders) = &self.orders {
            // The thread ends only when it is told to.
            let _ = orders.send(order);
        }
    }

    /// The entries queued so far.
    pub fn written(&self) -> Written {
        Written {
            shared: Arc::clone(&self.shared),
            mark: self.handed_in,
        }
    }

    /// How many of the queued entries are written, or kept in memory.
    pub fn seen_to(&self) -> u64 {
        *self.shared.done()
    }

    /// The news of them since the last call.
    pub fn fetch(&self) -> Vec<Told<E>> {
        self.told.try_iter().collect()
    }

    /// Writes the queue, retrying failed writes, and ends the thread. The journal keeps its lock until
    /// this writer is dropped. `None`: that takes longer, and may be called again.
    pub fn finish_within(&mut self, time: Duration) -> Option<Left> {
        self.orders = None;
        let until = Instant::now() + time;
        while (self.thread.as_ref()).is_some_and(|thread| !thread.is_finished()) {
            if Instant::now() >= until {
                return None;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Some(match self.thread.take().map(JoinHandle::join) {
            Some(Ok((journal, left))) => {
                self.ended = Some(journal);
                left
            }
            _ => Left::default(),
        })
    }

    /// Stops waiting for the thread: it keeps the journal and its lock until it or the process ends.
    pub fn give_up(&mut self) -> Left {
        self.orders = None;
        let hangs = self.thread.take().is_some();
        let not_seen_to = self.handed_in.saturating_sub(self.seen_to());
        let entries = not_seen_to + self.shared.unwritten.load(Ordering::Relaxed);
        let why = || "the disk does not answer".to_owned();
        Left {
            unwritten: (hangs && entries > 0).then(|| (entries, why())),
        }
    }
}

impl<E> Drop for Writer<E> {
    /// Entries that were handed in are written.
    fn drop(&mut self) {
        self.orders = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Clerk<E> {
    journal: Journal<E>,
    tell: Box<dyn Fn(Told<E>) + Send>,
    shared: Arc<Shared>,
    /// Not written, eldest first.
    kept: VecDeque<E>,
    /// Why.
    stuck: Option<String>,
    /// Of those, the ones that were too many.
    lost: u64,
    tried: Instant,
}

impl<E: Entry> Clerk<E> {
    fn work(mut self, to_do: &Receiver<Order<E>>, reserve: &Reserve) -> (Journal<E>, Left) {
        let member = reserve.join();
        loop {
            member.rest();
            let order = match self.stuck {
                Some(_) => to_do.recv_timeout(AGAIN.saturating_sub(self.tried.elapsed())),
                None => to_do.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            member.wake();
            match order {
                Ok(Order::Append(entry)) => self.append(entry),
                Ok(Order::Compact(entry)) => self.compact(&entry),
                Err(RecvTimeoutError::Timeout) => self.again(),
                Err(RecvTimeoutError::Disconnected) => break,
            }
            let unwritten = self.kept.len() as u64 + self.lost;
            self.shared.unwritten.store(unwritten, Ordering::Relaxed);
        }
        if self.stuck.is_some() {
            self.again();
        }
        let unwritten = self
            .stuck
            .map(|why| (self.kept.len() as u64 + self.lost, why));
        (self.journal, Left { unwritten })
    }

    fn append(&mut self, entry: E) {
        let tried = match self.stuck {
            None => Some(self.journal.append(&entry)),
            Some(_) => None,
        };
        // Counted before anybody is woken: the woken thread looks at the count once, and sleeps again.
        *self.shared.done() += 1;
        self.shared.more.notify_all();
        match tried {
            Some(Ok(sequence)) => (self.tell)(Told::Noted(sequence, Box::new(entry))),
            Some(Err(error)) => {
                self.keep(entry);
                self.get_stuck(&error);
            }
            None => {
                self.keep(entry);
                (self.tell)(Told::Kept);
                if self.tried.elapsed() >= AGAIN {
                    self.again();
                }
            }
        }
        if self.stuck.is_none() && self.journal.should_be_compacted() {
            (self.tell)(Told::WantsSnapshot);
        }
    }

    fn get_stuck(&mut self, error: &JournalError) {
        let why = error.to_string();
        (self.tell)(Told::Stuck(why.clone()));
        self.stuck = Some(why);
        self.tried = Instant::now();
    }

    fn keep(&mut self, entry: E) {
        if self.kept.len() >= MOST_KEPT {
            self.kept.pop_front();
            self.lost += 1;
        }
        self.kept.push_back(entry);
    }

    /// Tries failed writes again.
    fn again(&mut self) {
        self.tried = Instant::now();
        while let Some(entry) = self.kept.front() {
            match self.journal.append(entry) {
                Ok(sequence) => {
                    if let Some(entry) = self.kept.pop_front() {
                        (self.tell)(Told::Noted(sequence, Box::new(entry)));
                    }
                }
                Err(error) => {
                    // Only a new file fixes it.
                    if matches!(error, JournalError::Broken { .. }) {
                        (self.tell)(Told::WantsSnapshot);
                    }
                    return;
                }
            }
        }
        self.unstuck();
    }

    fn unstuck(&mut self) {
        if self.stuck.take().is_some() {
            let lost = std::mem::take(&mut self.lost);
            (self.tell)(Told::Written { lost });
            if lost > 0 {
                // The state that they add up to.
                (self.tell)(Told::WantsSnapshot);
            }
        }
    }

    fn compact(&mut self, entry: &E) {
        // If there is no room for a second file, the old one stays in use.
        if self.journal.compact(std::slice::from_ref(entry)).is_ok() {
            // All that was kept was handed in before, and is in it.
            self.lost += self.kept.len() as u64;
            self.kept.clear();
            if self.stuck.take().is_some() {
                let lost = std::mem::take(&mut self.lost);
                (self.tell)(Told::Written { lost });
            }
            self.lost = 0;
        } else {
            self.journal.put_off_compaction();
        }
    }
}

#[cfg(test)]
mod tests {
    use serde::{Deserialize, Serialize};

    use super::*;
    use crate::journal::Durability;

    #[derive(Debug, Serialize, Deserialize, PartialEq)]
    struct Note(u64);

    impl Entry for Note {
        const KIND: &'static str = "notes";
        const VERSION: u32 = 1;

        fn durability(&self) -> Durability {
            Durability::Durable
        }
    }

    const LONG: Duration = Duration::from_secs(600);

    /// A disk that does not answer keeps the thread as this does.
    #[test]
    fn what_hangs_is_not_waited_for_and_its_entries_are_counted() {
        let dir = tempfile::tempdir().unwrap();
        let (journal, _) = Journal::<Note>::open(dir.path()).unwrap();
        let (go_on, hangs) = channel::<()>();
        let wake = move || {
            let _ = hangs.recv();
        };
        let mut writer = Writer::start(journal, Reserve::default(), wake).unwrap();
        for number in 0..3 {
            writer.append(Note(number));
        }
        let mut first = writer.written();
        first.mark = 1;
        first.wait();
        assert_eq!(writer.finish_within(Duration::ZERO), None);
        let (entries, _) = writer.give_up().unwritten.unwrap();
        assert_eq!(entries, 2);
        drop(writer);
        drop(go_on);
    }

    #[test]
    fn whoever_is_woken_finds_the_entry_counted() {
        let dir = tempfile::tempdir().unwrap();
        let (journal, _) = Journal::<Note>::open(dir.path()).unwrap();
        let (woken, wakes) = channel();
        let (go_on, seen) = channel::<()>();
        let wake = move || {
            let _ = woken.send(());
            let _ = seen.recv();
        };
        let mut writer = Writer::start(journal, Reserve::default(), wake).unwrap();
        writer.append(Note(1));
        wakes.recv().unwrap();
        let counted = writer.seen_to();
        drop(go_on);
        assert_eq!(counted, 1);
        assert_eq!(writer.finish_within(LONG), Some(Left::default()));
    }

    #[test]
    fn what_is_handed_in_is_written_and_told() {
        let dir = tempfile::tempdir().unwrap();
        let (journal, _) = Journal::<Note>::open(dir.path()).unwrap();
        let mut writer = Writer::start(journal, Reserve::default(), || {}).unwrap();
        for number in 0..5 {
            writer.append(Note(number));
        }
        writer.written().wait();
        assert_eq!(writer.seen_to(), 5);
        assert_eq!(writer.finish_within(LONG), Some(Left::default()));
        let numbers = (writer.fetch().into_iter()).filter_map(|told| match told {
            Told::Noted(sequence, _) => Some(sequence),
            _ => None,
        });
        assert_eq!(numbers.collect::<Vec<u64>>(), [1, 2, 3, 4, 5]);
        // The lock is kept until the writer is gone.
        assert!(Journal::<Note>::open(dir.path()).is_err());
        drop(writer);
        let (_, loaded) = Journal::<Note>::open(dir.path()).unwrap();
        assert_eq!(loaded.entries.len(), 5);
    }
}
