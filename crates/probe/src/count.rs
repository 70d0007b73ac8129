//! The measuring thread counts its own activations: one reading of its group of counters for each job, after the end of
//! the job was taken, so that no instant on record has the reading in it. It delays the way to sleep; only a job whose
//! release has passed by then starts later by it.
//!
//! The difference to the reading before is recorded with the sample. Hardware counters if there is a PMU, else those of the
//! kernel; docs/src/isolation.md explains their use.

use host::counters::{CounterError, HARDWARE, MOST, Reading, SOFTWARE, TaskCounters};
use model::Counters;
use record::samples::layout::{CountRow, Counted, Header, Sample};

use crate::clock;
use crate::map::Map;
use crate::measure::{Recorder, Sheet};

/// The thread's own counters.
pub(crate) struct Meter {
    counters: TaskCounters,
    kind: Counted,
    cost_ns: u64,
}

impl Meter {
    /// Counters of the calling thread, if it is to count; and their entries for the header.
    pub(crate) fn of_this_thread(
        asked: Counters,
        period_ns: i64,
    ) -> (Option<Meter>, impl FnOnce(Header) -> Header) {
        let mut code = Counted::NotAsked;
        let (mut cost_ns, mut codes) = (0, [0; MOST]);
        let mut meter = None;
        if matches!(asked, Counters::WhereCheap | Counters::Activations) {
            match attach() {
                Err(_) => code = Counted::Refused,
                Ok((counters, kind)) => {
                    cost_ns = reading_cost_ns(&counters);
                    let share = cost_ns.saturating_mul(Counters::CHEAP_SHARE);
                    let cheap = share <= period_ns.max(0).unsigned_abs();
                    if cheap || asked == Counters::Activations {
                        code = kind;
                        for (code, counter) in codes.iter_mut().zip(counters.counters()) {
                            *code = counter.code();
                        }
                        meter = Some(Meter {
                            counters,
                            kind,
                            cost_ns,
                        });
                    } else {
                        code = Counted::TooDear;
                    }
                }
            }
        }
        let say = move |header: Header| Header {
            counted: code as u32,
            counters: codes,
            count_cost_ns: cost_ns,
            ..header
        };
        (meter, say)
    }

    /// The counts so far; `None` for a reading that failed.
    #[inline(always)]
    pub(crate) fn read(&self) -> Option<Reading> {
        self.counters.reading().ok()
    }
}

fn attach() -> Result<(TaskCounters, Counted), CounterError> {
    match TaskCounters::attach(0, &HARDWARE) {
        Ok(counters) => Ok((counters, Counted::Hardware)),
        Err(CounterError::NoPmu(_)) => {
            TaskCounters::attach(0, &SOFTWARE).map(|counters| (counters, Counted::Software))
        }
        Err(other) => Err(other),
    }
}

/// Median cost of one reading, ns, from 33 that follow a sleep each, as those of activations do: in a row they would
/// find everything in the caches, and take a fraction of it.
fn reading_cost_ns(counters: &TaskCounters) -> u64 {
    const SLEEP_NS: i64 = 100_000;
    let mut costs = [0i64; 33];
    for cost in &mut costs {
        clock::sleep_for(SLEEP_NS);
        let from = clock::now();
        let _ = std::hint::black_box(counters.reading());
        *cost = clock::now() - from;
    }
    costs.sort_unstable();
    costs[16].unsigned_abs()
}

/// A sheet with a row of counts for each record.
pub(crate) struct CountedSheet<'a> {
    sheet: Sheet<'a>,
    meter: &'a Meter,
    /// Where the first row stands.
    rows: *mut CountRow,
    written: usize,
    first: Reading,
    last: Reading,
    /// Time that the readings took, ns.
    spent_ns: i64,
    /// Whether a reading failed: then the counts are none.
    failed: bool,
}

impl<'a> CountedSheet<'a> {
    /// The sheet of `map`, counting from the reading `from` on; `None` if the map has no room.
    pub(crate) fn new(
        map: &'a Map,
        jobs: u32,
        meter: &'a Meter,
        from: Reading,
    ) -> Option<CountedSheet<'a>> {
        let sheet = Sheet::new(map, jobs)?;
        let at = usize::try_from(sheet.read_header().counts_at).ok()?;
        let end = at.checked_add(sheet.capacity() * size_of::<CountRow>())?;
        if at == 0 || at % align_of::<CountRow>() != 0 || end > map.len() {
            return None;
        }
        // SAFETY: inside the mapping, as was just seen.
        let rows = unsafe { map.as_ptr().add(at).cast() };
        Some(CountedSheet {
            sheet,
            meter,
            rows,
            written: 0,
            first: from,
            last: from,
            spent_ns: 0,
            failed: false,
        })
    }

    /// The header's sums of the loop that is over.
    pub(crate) fn sums(&self, header: Header) -> Header {
        let since = |of: fn(&Reading) -> u64| of(&self.last).saturating_sub(of(&self.first));
        Header {
            counted: match self.failed {
                true => Counted::Refused as u32,
                false => self.meter.kind as u32,
            },
            count_cost_ns: self.meter.cost_ns,
            count_loop_cost_ns: self.spent_ns.unsigned_abs() / self.written.max(1) as u64,
            count_enabled_ns: since(|reading| reading.enabled_ns),
            count_running_ns: since(|reading| reading.running_ns),
            ..header
        }
    }
}

impl Recorder for CountedSheet<'_> {
    fn capacity(&self) -> usize {
        self.sheet.capacity()
    }

    fn read_header(&self) -> Header {
        self.sheet.read_header()
    }

    fn write_header(&mut self, header: &Header) {
        self.sheet.write_header(header);
    }

    #[inline(always)]
    fn put(&mut self, sample: Sample) {
        let now = self.meter.read();
        self.spent_ns += clock::now() - sample.end_ns;
        self.failed |= now.is_none();
        let now = now.unwrap_or(self.last);
        let row: CountRow = std::array::from_fn(|at| {
            let counted = now.counts[at].wrapping_sub(self.last.counts[at]);
            u32::try_from(counted).unwrap_or(u32::MAX)
        });
        self.last = now;
        // The row stands before the sheet counts its record, so that a cell killed here leaves no record without.
        // SAFETY: there is a row for each record of the capacity, which the loop does not exceed.
        unsafe { self.rows.add(self.written).write(row) };
        self.written += 1;
        self.sheet.put(sample);
    }

    fn restart(&mut self) {
        self.written = 0;
        self.sheet.restart();
    }

    fn lost(&self) -> u32 {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::map::{prepare_counted_samples, prepare_samples};
    use crate::measure::{self, Plan};
    use model::{Pacing, Work};
    use std::fs::OpenOptions;
    use std::path::Path;

    fn map(path: &Path) -> Map {
        let file = OpenOptions::new().read(true).write(true).open(path);
        Map::of(&file.unwrap()).unwrap()
    }

    #[test]
    fn every_activation_has_the_switches_of_its_sleep() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.samples");
        let jobs = 30;
        prepare_counted_samples(&path, jobs.into()).unwrap();
        // By the kernel's counters, since no machine lacks them and they are known here: a sleep is a switch.
        let Ok(counters) = TaskCounters::attach(0, &SOFTWARE) else {
            return;
        };
        let meter = Meter {
            counters,
            kind: Counted::Software,
            cost_ns: 1,
        };
        let map = map(&path);
        let from = meter.read().unwrap();
        let mut sheet = CountedSheet::new(&map, jobs, &meter, from).unwrap();
        let plan = Plan {
            work: Work::Timer,
            pacing: Pacing::Relative,
            period_ns: 1_000_000,
            jobs,
            cpu_ns: 0,
            turns: None,
            program: None,
        };
        let go_ns = clock::now();
        let tally = measure::run(&plan, &crate::sleep::InBand, &mut sheet, go_ns, go_ns);
        let header = Header {
            count: tally.executed.into(),
            planned: jobs.into(),
            complete: 1,
            ..sheet.sums(sheet.read_header())
        };
        sheet.write_header(&header);
        let read = record::samples::read(&path).unwrap();
        assert_eq!(read.counts.len(), jobs as usize);
        let switches = (SOFTWARE.iter())
            .position(|counter| *counter == host::counters::Counter::ContextSwitches)
            .unwrap();
        for row in &read.counts[1..] {
            assert!(row[switches] >= 1, "{row:?}");
        }
        let last = meter.read().unwrap();
        let sum: u64 = read.counts.iter().map(|row| u64::from(row[switches])).sum();
        assert!(sum <= last.counts[switches] - from.counts[switches]);
        assert!(read.header.count_enabled_ns > 0);
        assert!(read.header.count_loop_cost_ns > 0);
        assert_eq!(read.header.count_enabled_ns, read.header.count_running_ns);
    }

    #[test]
    fn a_thread_counts_where_it_is_cheap_or_asked_for_and_says_what() {
        let of = |asked, period_ns| {
            let (meter, say) = Meter::of_this_thread(asked, period_ns);
            (meter.is_some(), say(Header::new()))
        };
        let (counts, header) = of(Counters::None, 1_000_000_000);
        assert!(!counts && header.counted == Counted::NotAsked as u32);
        let (counts, header) = of(Counters::Activations, 1);
        if !counts {
            assert_eq!(Counted::of(&header), Some(Counted::Refused));
            return;
        }
        assert!(Counted::of(&header).unwrap().has_counts());
        assert!(
            header.counters[0] != 0 && header.count_cost_ns > 0,
            "{header:?}"
        );
        let (counts, header) = of(Counters::WhereCheap, 1);
        assert!(!counts, "no reading takes a hundredth of a nanosecond");
        assert_eq!(Counted::of(&header), Some(Counted::TooDear));
        assert_eq!(header.counters, [0; MOST]);
        let (counts, _) = of(Counters::WhereCheap, i64::MAX);
        assert!(counts);
    }

    #[test]
    fn a_file_without_room_for_counts_is_no_counted_sheet() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.samples");
        prepare_samples(&path, 5).unwrap();
        if let (Some(meter), _) = Meter::of_this_thread(Counters::Activations, 1) {
            let map = map(&path);
            assert!(CountedSheet::new(&map, 5, &meter, Reading::default()).is_none());
        }
    }
}
