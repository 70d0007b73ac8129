//! The measuring loop. After it is armed: no allocation, no lock, no system call but the clock and the sleep.

use model::{Pacing, Timetable, Work};
use record::samples::layout::{HEADER_BYTES, Header, Sample};

use crate::clock;
use crate::control::Stage;
use crate::map::Map;
use crate::program::Program;
use crate::sleep::Sleep;
use crate::work::mac;

/// The jobs to measure.
#[derive(Clone, Copy)]
pub(crate) struct Plan<'a> {
    pub work: Work,
    /// Cpu time that a job declares, ns: its work is a portion that is repeated as long as another one fits. 0: a job is its
    /// work, once.
    pub cpu_ns: i64,
    pub pacing: Pacing,
    pub period_ns: i64,
    pub jobs: u32,
    /// When its turns are, for periodic jobs; `None`: nobody else's lie between them.
    pub turns: Option<Timetable>,
    /// The program that each job executes, for [`Work::Program`].
    pub program: Option<&'a Program>,
}

/// Where the loop leaves its records. Compiled into the loop for each kind; nothing is called through a pointer.
pub(crate) trait Recorder {
    /// Records that fit before the first is read or overwritten.
    fn capacity(&self) -> usize;
    /// Reads the header.
    fn read_header(&self) -> Header;
    /// Replaces the header.
    fn write_header(&mut self, header: &Header);
    /// Writes the next record and then the count, so that a cell killed here leaves only whole records behind.
    fn put(&mut self, sample: Sample);
    /// Forgets the written records.
    fn restart(&mut self);
    /// Records that found no room.
    fn lost(&self) -> u32;
}

/// The room for every record behind the header of a mapped samples file.
pub(crate) struct Sheet<'a> {
    map: &'a Map,
    capacity: usize,
    written: usize,
}

impl<'a> Sheet<'a> {
    /// The sheet of `map`, or `None` if it has no room for `jobs` records.
    pub(crate) fn new(map: &'a Map, jobs: u32) -> Option<Sheet<'a>> {
        let mut room = map.len().checked_sub(HEADER_BYTES)?;
        // SAFETY: the mapping is page-aligned and longer than a header.
        let counts_at = unsafe { (*map.as_ptr().cast::<Header>()).counts_at } as usize;
        if counts_at > 0 {
            room = room.min(counts_at.checked_sub(HEADER_BYTES)?);
        }
        let capacity = room / size_of::<Sample>();
        (capacity >= jobs as usize).then_some(Sheet {
            map,
            capacity,
            written: 0,
        })
    }

    /// The same where so many records stand there already; `None` where there is no room for them.
    pub(crate) fn behind(map: &'a Map, written: u32) -> Option<Sheet<'a>> {
        Sheet::new(map, written).map(|sheet| Sheet {
            written: written as usize,
            ..sheet
        })
    }

    fn header(&self) -> *mut Header {
        self.map.as_ptr().cast()
    }
}

impl Recorder for Sheet<'_> {
    fn capacity(&self) -> usize {
        self.capacity
    }

    fn read_header(&self) -> Header {
        // SAFETY: the mapping is page-aligned, longer than a header, and written by this process only.
        unsafe { self.header().read() }
    }

    fn write_header(&mut self, header: &Header) {
        // SAFETY: as in `read_header`.
        unsafe { self.header().write(*header) }
    }

    #[inline(always)]
    fn put(&mut self, sample: Sample) {
        debug_assert!(self.written < self.capacity);
        // SAFETY: the place is below the capacity (the loop writes at most `jobs` records), 32-byte records follow
        // the header page; the release fence keeps the record before the count.
        unsafe {
            let records = self.map.as_ptr().add(HEADER_BYTES).cast::<Sample>();
            records.add(self.written).write(sample);
            std::sync::atomic::fence(std::sync::atomic::Ordering::Release);
            (&raw mut (*self.header()).count).write_volatile(self.written as u64 + 1);
        }
        self.written += 1;
    }

    fn restart(&mut self) {
        self.written = 0;
        let mut header = self.read_header();
        header.count = 0;
        self.write_header(&header);
    }

    fn lost(&self) -> u32 {
        0
    }
}

/// How the loop ended.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Tally {
    pub executed: u32,
    pub skipped: u32,
    /// Jobs that took more cpu time than they declare, where they look at it.
    pub over: u32,
    /// Cpu time of the program that did the jobs, ns.
    pub program_cpu_ns: i64,
    /// Why there are no more jobs, if they ended before the plan's end.
    pub failure: Option<(Stage, i32)>,
}

/// Runs the jobs. The caller has slept to `go_ns` and read `started_ns` right after.
///
/// Periodic: release k is `go_ns + k * period`. A job that ends past later releases leaves the newest of them
/// to run at once, late; the ones before it are skipped and counted. Executed and skipped always add up to the plan.
/// Where cells take turns, a release belongs to its turn, and a job does not start once that is over: it is skipped.
#[inline(never)]
pub(crate) fn run<R: Recorder, S: Sleep>(
    plan: &Plan<'_>,
    sleep: &S,
    sheet: &mut R,
    go_ns: i64,
    started_ns: i64,
) -> Tally {
    let begin = (go_ns, started_ns);
    match (plan.pacing, plan.turns) {
        (Pacing::Periodic, None) => periodic(plan, sleep, Grid(plan.period_ns), sheet, begin),
        (Pacing::Periodic, Some(turns)) => {
            periodic(plan, sleep, Arm::new(turns, go_ns), sheet, begin)
        }
        (Pacing::Relative, _) => relative(plan, sleep, sheet, begin),
    }
}

/// Does a job; when it was done. One that looks at its cpu time is counted in `over` when it took more than it declares.
#[inline(always)]
fn job(plan: &Plan<'_>, tally: &mut Tally, start_ns: i64) -> i64 {
    match plan.work {
        Work::Mac { steps } => {
            if plan.cpu_ns > 0 {
                tally.over += u32::from(portions(steps, plan.cpu_ns) > plan.cpu_ns);
            } else {
                std::hint::black_box(mac(steps));
            }
            clock::now()
        }
        Work::Timer | Work::Busy | Work::Endless => start_ns,
        Work::Program => {
            if let Some(Err(failure)) = plan.program.map(Program::execute) {
                tally.failure = Some(failure);
            }
            clock::now()
        }
    }
}

/// The part of a job's declared time that it computes, in hundredths: waking up and reading the clocks is billed to it, too.
const COMPUTES: i64 = 97;

/// Repeats `steps` until another portion as long as the longest would take more than a job of `cpu_ns` computes, as the kernel
/// bills it: on a machine of changing speed the time is kept, not the work. Returns the cpu time that it took, ns.
#[inline(never)]
fn portions(steps: u32, cpu_ns: i64) -> i64 {
    let computes_ns = cpu_ns / 100 * COMPUTES;
    let begin = clock::thread_cpu_time();
    let (mut last, mut longest) = (begin, 0);
    loop {
        std::hint::black_box(mac(steps));
        let now = clock::thread_cpu_time();
        longest = longest.max(now - last);
        if now - begin + longest > computes_ns {
            return now - begin;
        }
        last = now;
    }
}

fn periodic<R: Recorder, S: Sleep, G: Releases>(
    plan: &Plan<'_>,
    sleep: &S,
    mut releases: G,
    sheet: &mut R,
    begin: (i64, i64),
) -> Tally {
    let mut tally = Tally::default();
    let (mut index, mut skipped) = (0, 0);
    let (mut release, mut start) = begin;
    loop {
        let end = job(plan, &mut tally, start);
        if tally.failure.is_some() {
            return tally;
        }
        sheet.put(Sample {
            index,
            skipped,
            release_ns: release,
            start_ns: start,
            end_ns: end,
        });
        tally.executed += 1;
        let next = releases.next(index, release, end, plan.jobs);
        skipped = next.0 - index - 1;
        tally.skipped += skipped;
        (index, release) = next;
        if index >= plan.jobs {
            return tally;
        }
        if end < release {
            sleep.until(release);
        }
        start = clock::now();
    }
}

/// When the jobs of a periodic plan are due. Compiled into the loop for each kind.
trait Releases {
    /// The job of `jobs` that comes after job `index`, which was released and ended at these times, and its release;
    /// number `jobs`, whose release means nothing, if there is none.
    fn next(&mut self, index: u32, release_ns: i64, end_ns: i64, jobs: u32) -> (u32, i64);
}

/// A release every so many ns.
struct Grid(i64);

impl Releases for Grid {
    #[inline(always)]
    fn next(&mut self, index: u32, release_ns: i64, end_ns: i64, jobs: u32) -> (u32, i64) {
        let steps = 1 + skipped(end_ns - release_ns, self.0, jobs - index - 1);
        (index + steps, release_ns + i64::from(steps) * self.0)
    }
}

/// The releases of one arm of a timetable. The beginning of the turn last asked for is kept: working it out takes some
/// hundred nanoseconds, once in a turn, between the end of a job and the sleep.
struct Arm {
    turns: Timetable,
    /// Origin of the timetable, CLOCK_MONOTONIC ns.
    origin_ns: i64,
    lap: u32,
    turn_ns: i64,
}

impl Arm {
    /// Those whose first is at `first_ns`.
    fn new(turns: Timetable, first_ns: i64) -> Arm {
        Arm {
            turns,
            origin_ns: first_ns - turns.turn_ns(0),
            lap: 0,
            turn_ns: first_ns,
        }
    }

    fn of(&mut self, index: u32) -> i64 {
        let lap = index / self.turns.jobs;
        if lap != self.lap {
            self.lap = lap;
            self.turn_ns = self.origin_ns + self.turns.turn_ns(lap);
        }
        self.turn_ns + i64::from(index % self.turns.jobs) * self.turns.period_ns
    }

    /// The job that comes after `index`, which ended at `end`; `jobs` if there is none.
    fn after(&mut self, index: u32, end: i64, jobs: u32) -> u32 {
        let mut next = index + 1;
        loop {
            if next >= jobs {
                return jobs;
            }
            let of_turn = next % self.turns.jobs;
            let release = self.of(next);
            let left = i64::from(self.turns.jobs - of_turn);
            if release + left * self.turns.period_ns <= end {
                // This turn is over.
                next += left as u32;
            } else if release + self.turns.period_ns <= end {
                // The newest release before the end is not skipped: it starts at once, late.
                next += ((end - release) / self.turns.period_ns) as u32;
            } else {
                return next;
            }
        }
    }
}

impl Releases for Arm {
    #[inline(always)]
    fn next(&mut self, index: u32, _release_ns: i64, end_ns: i64, jobs: u32) -> (u32, i64) {
        let next = self.after(index, end_ns, jobs);
        (next, self.of(next))
    }
}

/// Activations that a job skips which ends `late` ns after its own release, `left` activations being left.
///
/// The newest release before the end is not skipped: it starts at once, late.
#[inline(always)]
fn skipped(late: i64, period: i64, left: u32) -> u32 {
    if late < 2 * period {
        return 0;
    }
    let passed = late / period - 1;
    u32::try_from(passed).map_or(left, |passed| passed.min(left))
}

fn relative<R: Recorder, S: Sleep>(
    plan: &Plan<'_>,
    sleep: &S,
    sheet: &mut R,
    begin: (i64, i64),
) -> Tally {
    let (mut release, mut start) = begin;
    let mut tally = Tally::default();
    for index in 0..plan.jobs {
        if index > 0 {
            sleep.period(plan.period_ns);
            start = clock::now();
        }
        let end = job(plan, &mut tally, start);
        if tally.failure.is_some() {
            break;
        }
        let sample = Sample {
            index,
            skipped: 0,
            release_ns: release,
            start_ns: start,
            end_ns: end,
        };
        sheet.put(sample);
        tally.executed += 1;
        release = end + plan.period_ns;
    }
    tally
}

/// The loop's own cost per job in ns: recording without work or sleep, over the sheet's first records.
///
/// Also brings code and data of the loop into the caches before the real run. Leaves the count at 0.
pub(crate) fn rehearse<R: Recorder>(sheet: &mut R) -> u64 {
    let jobs = u32::try_from(sheet.capacity()).unwrap_or(u32::MAX).min(512);
    if jobs == 0 {
        return 0;
    }
    let nothing = Plan {
        work: Work::Timer,
        cpu_ns: 0,
        pacing: Pacing::Periodic,
        period_ns: 1,
        jobs,
        turns: None,
        program: None,
    };
    let mut tally = Tally::default();
    let begin = clock::now();
    let mut start = begin;
    for at in 0..jobs {
        let end = job(&nothing, &mut tally, start);
        let sample = Sample {
            index: at,
            skipped: skipped(std::hint::black_box(0), 1, jobs),
            release_ns: begin,
            start_ns: start,
            end_ns: end,
        };
        sheet.put(sample);
        start = clock::now();
    }
    let cost = (start - begin) / i64::from(jobs);
    sheet.restart();
    cost.unsigned_abs()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::map::prepare_samples;
    use proptest::prelude::*;
    use std::fs::OpenOptions;

    fn measured(plan: Plan<'_>, go_ns: impl FnOnce() -> i64) -> record::samples::Samples {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.samples");
        prepare_samples(&path, u64::from(plan.jobs)).unwrap();
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .open(&path)
            .unwrap();
        let map = Map::of(&file).unwrap();
        let mut sheet = Sheet::new(&map, plan.jobs).unwrap();
        rehearse(&mut sheet);
        let go_ns = go_ns();
        clock::sleep_until(go_ns);
        let tally = run(
            &plan,
            &crate::sleep::InBand,
            &mut sheet,
            go_ns,
            clock::now(),
        );
        let mut header = sheet.read_header();
        assert_eq!(header.count, u64::from(tally.executed));
        header.skipped = u64::from(tally.skipped);
        header.complete = 1;
        sheet.write_header(&header);
        record::samples::read(&path).unwrap()
    }

    #[test]
    fn a_periodic_plan_keeps_to_the_grid_and_accounts_for_every_activation() {
        let plan = Plan {
            work: Work::Timer,
            cpu_ns: 0,
            pacing: Pacing::Periodic,
            period_ns: 200_000,
            jobs: 50,
            turns: None,
            program: None,
        };
        let read = measured(plan, || clock::now() + 1_000_000);
        let go = read.samples[0].release_ns;
        for sample in &read.samples {
            assert_eq!(sample.release_ns, go + i64::from(sample.index) * 200_000);
            assert!(sample.start_ns >= sample.release_ns);
        }
        assert_eq!(read.header.count + read.header.skipped, 50);
    }

    #[test]
    fn a_stall_is_counted_activation_by_activation() {
        // The barrier opened ten periods ago: activation 0 runs late, 1 to 9 or more are skipped.
        let plan = Plan {
            work: Work::Timer,
            cpu_ns: 0,
            pacing: Pacing::Periodic,
            period_ns: 50_000_000,
            jobs: 12,
            turns: None,
            program: None,
        };
        let read = measured(plan, || clock::now() - 10 * 50_000_000);
        assert_eq!(read.samples[0].index, 0);
        assert!(read.samples[1].skipped >= 9, "{:?}", read.samples[1]);
        assert_eq!(read.header.count + read.header.skipped, 12);
    }

    #[test]
    fn a_plan_that_cannot_keep_up_ends_and_adds_up() {
        let plan = Plan {
            work: Work::Mac { steps: 200_000 },
            cpu_ns: 0,
            pacing: Pacing::Periodic,
            period_ns: 10_000,
            jobs: 500,
            turns: None,
            program: None,
        };
        let read = measured(plan, clock::now);
        assert!(read.header.skipped > 0);
        assert_eq!(read.header.count + read.header.skipped, 500);
    }

    #[test]
    fn a_job_is_repeated_until_its_cpu_time_is_used_and_is_done_once_at_least() {
        assert!(portions(2_000, 1) > 0, "once, though it takes longer");
        let before = clock::thread_cpu_time();
        let took = portions(2_000, 50_000_000);
        assert!(took > 0 && took <= clock::thread_cpu_time() - before);
        let plan = Plan {
            work: Work::Mac { steps: 2_000 },
            cpu_ns: 1_000_000,
            pacing: Pacing::Periodic,
            period_ns: 2_000_000,
            jobs: 3,
            turns: None,
            program: None,
        };
        let read = measured(plan, clock::now);
        assert_eq!(read.header.count + read.header.skipped, 3);
        assert!((read.samples.iter()).all(|sample| sample.end_ns > sample.start_ns));
    }

    #[test]
    fn relative_pacing_waits_a_period_after_each_end() {
        let plan = Plan {
            work: Work::Mac { steps: 10 },
            cpu_ns: 0,
            pacing: Pacing::Relative,
            period_ns: 300_000,
            jobs: 20,
            turns: None,
            program: None,
        };
        let read = measured(plan, clock::now);
        for pair in read.samples.windows(2) {
            assert_eq!(pair[1].release_ns, pair[0].end_ns + 300_000);
            assert!(pair[1].start_ns >= pair[1].release_ns);
        }
    }

    proptest! {
        /// Independent of the loop: the next index is the newest release not after the end, but at least the next.
        #[test]
        fn skipping_goes_to_the_newest_release(late in 0i64..1 << 40, period in 1i64..1 << 30, left in 0u32..1000) {
            let next = (late / period).max(1).min(i64::from(left) + 1);
            prop_assert_eq!(i64::from(skipped(late, period, left)), next - 1);
        }
    }

    fn two_arms(arm: u32) -> Timetable {
        Timetable {
            jobs: 3,
            extra: 0,
            period_ns: 1_000_000,
            arms: 2,
            arm,
            seed: 11,
        }
    }

    #[test]
    fn arms_keep_to_their_own_turns() {
        let plan = |arm| Plan {
            work: Work::Timer,
            cpu_ns: 0,
            pacing: Pacing::Periodic,
            period_ns: 1_000_000,
            jobs: 10,
            turns: Some(two_arms(arm)),
            program: None,
        };
        let begin = clock::now() + 5_000_000;
        let samples: Vec<_> = std::thread::scope(|scope| {
            let arms = [0, 1].map(|arm| {
                let first = begin + two_arms(arm).turn_ns(0);
                scope.spawn(move || measured(plan(arm), || first))
            });
            arms.map(|arm| arm.join().unwrap()).into()
        });
        for (arm, read) in samples.iter().enumerate() {
            let table = two_arms(arm as u32);
            assert_eq!(read.header.count + read.header.skipped, 10);
            for sample in &read.samples {
                let (lap, job) = (sample.index / 3, i64::from(sample.index % 3));
                let due = begin + table.turn_ns(lap) + job * 1_000_000;
                assert_eq!(sample.release_ns, due);
                assert!(sample.start_ns >= due);
            }
        }
    }

    proptest! {
        /// The rule of `Arm`, by looking at every release.
        #[test]
        fn what_is_skipped_is_what_had_passed(index in 0u32..40, late in 0i64..60_000_000) {
            let jobs = 30;
            let table = two_arms(1);
            let due = |index: u32| table.turn_ns(index / 3) + i64::from(index % 3) * 1_000_000;
            let mut releases = Arm::new(table, table.turn_ns(0));
            prop_assert_eq!(releases.of(index), due(index));
            let end = due(index) + late;
            let over = |index: u32| table.turn_ns(index / 3) + 3_000_000;
            let may_start = |next: u32| {
                let newer = next % 3 < 2 && next + 1 < jobs && due(next + 1) <= end;
                over(next) > end && !newer
            };
            let expected = (index + 1..jobs).find(|next| may_start(*next)).unwrap_or(jobs);
            prop_assert_eq!(releases.after(index, end, jobs), expected);
        }
    }
}
