//! A program that reports its jobs on a page: it is held back at its first task, released with all others, and followed.

use std::fs::OpenOptions;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, Release};

use host::sched::Class;
use record::samples::layout::{Header, Sample};
use timecell_client::layout::{CLAIMED, Head, Identity, RING, identity_at, page_bytes};

use super::beside::Beside;
use super::page::{Job, SLOTS, Watched};
use super::reap::{ended, reap};
use super::{ENDING_NS, Program};
use crate::args::ProbeArgs;
use crate::control::Stage;
use crate::map::Map;
use crate::measure::{Plan, Recorder, Tally};
use crate::{arm, clock, futex};

/// Longest time from a program's start to its first task, ns.
const OPENING_NS: i64 = 20_000_000_000;
/// Between two looks at a program that starts or ends, ns.
const LOOK_NS: i64 = 1_000_000;
/// How much longer than planned its jobs may take to come, ns, beside 16 periods.
const LATE_NS: i64 = 100_000_000;

/// The page of a program that is to be started.
pub(crate) struct Reporting {
    map: Map,
    program: Program,
    task: Watched,
    beside: Beside,
}

/// A program that waits at its first task, or runs. It ends with this.
pub(crate) struct Started {
    map: Map,
    pid: libc::pid_t,
    /// Its wait status, once it has ended.
    ended: Option<i32>,
    /// The one that is compared.
    pub(super) task: Watched,
    pub(super) beside: Beside,
}

impl Reporting {
    /// Maps the page, and a samples file of each task beside the one that is compared.
    ///
    /// # Errors
    /// The errno of the step that failed.
    pub fn new(args: &ProbeArgs, page: &Path) -> Result<Reporting, i32> {
        let errno = |error: io::Error| error.raw_os_error().unwrap_or(libc::EIO);
        let file = (OpenOptions::new().read(true).write(true).open(page)).map_err(errno)?;
        let map = Map::of(&file).map_err(errno)?;
        if map.len() < page_bytes(SLOTS) {
            return Err(libc::EFBIG);
        }
        let program = Program::new(&args.program, Some(page))?;
        Ok(Reporting {
            map,
            program,
            task: Watched::of(args.tasks.first().map(|task| task.name.clone())),
            beside: Beside::of(args).map_err(errno)?,
        })
    }

    /// Starts the program and waits until it opens its first task.
    pub fn start(self) -> Result<Started, (Stage, i32)> {
        let pid = self.program.start()?;
        let mut started = Started {
            map: self.map,
            pid,
            ended: None,
            task: self.task,
            beside: self.beside,
        };
        let patience = clock::now() + OPENING_NS;
        while started.identity().state.load(Acquire) < CLAIMED {
            if let Some(status) = started.has_ended() {
                return Err(match status {
                    0 => (Stage::Silent, 0),
                    status => (Stage::Exit, status),
                });
            }
            if clock::now() > patience {
                return Err((Stage::Silent, 0));
            }
            clock::sleep_for(LOOK_NS);
        }
        Ok(started)
    }
}

impl Started {
    /// Opens the gate and follows the program until its jobs are done or should have been; then it is asked to end.
    pub fn follow<R: Recorder>(
        &mut self,
        plan: &Plan<'_>,
        fifo: Option<u8>,
        sheet: &mut R,
        go_ns: i64,
    ) -> Result<Tally, (Stage, i32)> {
        // The observer must not delay the observed program.
        if let Some(priority) = fifo.filter(|&priority| priority > 1) {
            let _ = arm::take_class(&Class::Fifo {
                priority: priority - 1,
            });
        }
        let before_ns = self.cpu_ns();
        self.open_gate();
        let mut following = Following::of(plan.period_ns, plan.jobs);
        // Some looks for each ring, none of them in a hurry.
        let shortest_ns = self.beside.shortest_ns().min(plan.period_ns);
        let look_ns = (shortest_ns * (RING as i64 / 4)).clamp(LOOK_NS, 100_000_000);
        let most_ns = plan.period_ns.saturating_mul(i64::from(plan.jobs) + 16);
        let patience = go_ns.saturating_add(most_ns).saturating_add(LATE_NS);
        let mut look = go_ns;
        loop {
            look += look_ns;
            clock::sleep_until(look.min(patience));
            let ended = self.has_ended();
            let done = self.read(&mut following, sheet)?;
            self.beside.read(&self.map, None)?;
            let over = clock::now() >= patience;
            if done || over {
                break;
            }
            if let Some(status) = ended {
                return Err(match status {
                    0 => (Stage::EndedEarly, following.tally.executed.cast_signed()),
                    status => (Stage::Exit, status),
                });
            }
        }
        if following.tally.executed == 0 {
            return Err((Stage::Silent, 0));
        }
        following.tally.skipped = plan.jobs - following.tally.executed;
        following.tally.program_cpu_ns = self.cpu_ns() - before_ns;
        self.end();
        Ok(following.tally)
    }

    /// Records the jobs that are over and were not read yet; whether the last activation was among them.
    fn read<R: Recorder>(
        &mut self,
        following: &mut Following,
        sheet: &mut R,
    ) -> Result<bool, (Stage, i32)> {
        let mut jobs = [Job::default(); RING];
        for job in self.look(&mut jobs)? {
            if following.take(job, sheet)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The jobs of the task that is compared that are over and were not read yet.
    pub(super) fn look<'j>(
        &mut self,
        jobs: &'j mut [Job; RING],
    ) -> Result<&'j [Job], (Stage, i32)> {
        self.task.look(&self.map, jobs)
    }

    /// Goes on with its newest jobs, where those before them were written over.
    pub(super) fn skip(&mut self) {
        self.task.skip(&self.map);
    }

    /// Writes the headers of the other tasks' records, from that of the first.
    pub fn write_headers(&self, first: &Header) {
        self.beside.write_headers(first);
    }

    /// Reads the other tasks, too, in a turn.
    pub(super) fn read_beside(&mut self, turn: Range<i64>) -> Result<(), (Stage, i32)> {
        self.beside.read(&self.map, Some(turn))
    }

    pub(super) fn has_ended(&mut self) -> Option<i32> {
        if self.ended.is_none() {
            self.ended = ended(self.pid, libc::WNOHANG);
        }
        self.ended
    }

    /// Cpu time of the program so far, ns; of one that has ended, all of it until it is reaped.
    pub(super) fn cpu_ns(&self) -> i64 {
        clock::process_cpu_time_of(self.pid)
    }

    /// Sends a signal to its process group.
    pub fn signal(&mut self, signal: libc::c_int) {
        if self.has_ended().is_none() {
            // SAFETY: no memory is involved. The group is that of a child that was not waited for, and nobody else's.
            unsafe { libc::kill(-self.pid, signal) };
        }
    }

    /// Asks it to end, and makes it.
    pub(super) fn end(&mut self) {
        for (signal, patience_ns) in [(libc::SIGTERM, ENDING_NS), (libc::SIGKILL, i64::MAX)] {
            if self.has_ended().is_some() {
                return;
            }
            self.signal(signal);
            // One that is stopped would not see it.
            self.signal(libc::SIGCONT);
            let until = clock::now().saturating_add(patience_ns);
            while self.has_ended().is_none() && clock::now() < until {
                clock::sleep_for(LOOK_NS);
            }
        }
    }

    /// Lets it go on from its first task.
    pub(super) fn open_gate(&self) {
        self.gate().store(0, Release);
        futex::wake_all(self.gate());
    }

    fn gate(&self) -> &AtomicU32 {
        // SAFETY: the head begins the mapping, and the gate is an atomic.
        unsafe { &self.at::<Head>(0).gate }
    }

    fn identity(&self) -> &Identity {
        // SAFETY: it lies within the mapping, and is made of atomics only.
        unsafe { self.at(identity_at(SLOTS, 0)) }
    }

    /// # Safety
    /// A `T` of atomics lies there, within [`page_bytes`] of so many slots.
    unsafe fn at<T>(&self, offset: usize) -> &T {
        // SAFETY: the caller's; the mapping is page-aligned and lives as long as this.
        unsafe { &*self.map.as_ptr().add(offset).cast::<T>() }
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        if self.has_ended().is_none() {
            self.signal(libc::SIGKILL);
            let _ = ended(self.pid, 0);
        }
        reap(self.pid);
    }
}

/// Jobs on their way from the page into the record: an activation is known by its release.
pub(super) struct Following {
    period_ns: i64,
    jobs: u32,
    /// Activation and release of the last job.
    pub(super) last: Option<(u32, i64)>,
    pub(super) tally: Tally,
}

impl Following {
    pub(super) fn of(period_ns: i64, jobs: u32) -> Following {
        Following {
            period_ns,
            jobs,
            last: None,
            tally: Tally::default(),
        }
    }

    /// Records a job; whether it belongs to the last activation.
    pub(super) fn take<R: Recorder>(
        &mut self,
        job: &Job,
        sheet: &mut R,
    ) -> Result<bool, (Stage, i32)> {
        // A job that was never ended leaves its activation out.
        if job.end_ns == 0 {
            return Ok(false);
        }
        if job.begin_ns > job.end_ns || job.release_ns > job.end_ns {
            return Err((Stage::Nonsense, 0));
        }
        let skipped = match self.last {
            None => 0,
            Some((_, release_ns)) => {
                // One that comes up to half a period late leaves none out.
                let passed = job.release_ns.saturating_sub(release_ns) + self.period_ns / 2;
                u32::try_from(passed / self.period_ns - 1).unwrap_or(0)
            }
        };
        let index = match self.last {
            None => 0,
            Some((index, _)) => index.saturating_add(skipped).saturating_add(1),
        };
        if index >= self.jobs {
            return Ok(true);
        }
        sheet.put(Sample {
            index,
            skipped,
            release_ns: job.release_ns,
            start_ns: job.begin_ns,
            end_ns: job.end_ns,
        });
        self.tally.executed += 1;
        self.last = Some((index, job.release_ns));
        Ok(index + 1 == self.jobs)
    }
}

#[cfg(test)]
mod tests {
    use super::super::kept::Kept;
    use super::super::page::{TaskOnPage, prepare_page, tasks_on};
    use super::*;
    use std::os::unix::process::CommandExt;
    use std::sync::atomic::Ordering::Relaxed;
    use timecell_client::layout::CLOSED;

    fn following(jobs: u32) -> Following {
        Following::of(1_000, jobs)
    }

    fn job(release_ns: i64, end_ns: i64) -> Job {
        Job {
            number: 0,
            release_ns,
            begin_ns: release_ns + 10,
            end_ns,
        }
    }

    #[test]
    fn an_activation_is_known_by_its_release() {
        let (mut kept, mut following) = (Kept::default(), following(8));
        // The second comes 400 ns late, which leaves none out; then two are left out; the next was never ended; the last two
        // are the seventh activation and one beyond the plan.
        for (release, end, last) in [
            (5_000, 5_500, false),
            (6_400, 6_500, false),
            (9_000, 9_100, false),
            (10_000, 0, false),
            (11_000, 11_100, false),
            (12_000, 12_100, true),
            (13_000, 13_100, true),
        ] {
            let seen = following.take(&job(release, end), &mut kept);
            assert_eq!(seen.map_err(|_| ()), Ok(last), "{release}");
        }
        let seen: Vec<(u32, u32, i64)> = (kept.0.iter())
            .map(|sample| (sample.index, sample.skipped, sample.release_ns))
            .collect();
        let expected = [
            (0, 0, 5_000),
            (1, 0, 6_400),
            (4, 2, 9_000),
            (6, 1, 11_000),
            (7, 0, 12_000),
        ];
        assert_eq!(seen, expected);
        assert_eq!(following.tally.executed, 5);
    }

    #[test]
    fn times_that_cannot_be_are_refused() {
        for bad in [job(5_000, 4_000), job(5_000, 5_005)] {
            let told = following(8).take(&bad, &mut Kept::default());
            assert_eq!(
                told.map_err(|(stage, _)| stage as u32),
                Err(Stage::Nonsense as u32)
            );
        }
    }

    #[test]
    fn a_page_tells_its_releases_and_a_closed_gate_is_on_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("page");
        prepare_page(&path, true).unwrap();
        assert_eq!(tasks_on(&path).unwrap(), []);
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .open(&path)
            .unwrap();
        let map = Map::of(&file).unwrap();
        // SAFETY: the mapping begins with a head.
        let head: &Head = unsafe { &*map.as_ptr().cast() };
        assert_eq!(head.gate.load(Relaxed), CLOSED);
        head.gate.store(0, Relaxed);
        let name = std::ffi::CString::new(path.to_str().unwrap()).unwrap();
        let client = timecell_client::Client::open(&name).unwrap();
        let mut task = client.task("control").unwrap();
        let seen = || {
            let released = |task: TaskOnPage| {
                let releases: Vec<i64> = task.spans.iter().map(|(release, _)| *release).collect();
                (task.name, releases)
            };
            let tasks = tasks_on(&path).unwrap().into_iter();
            tasks.map(released).collect::<Vec<_>>()
        };
        assert_eq!(seen(), [("control".to_owned(), Vec::new())]);
        for release in 0..40 {
            task.begin_released(release);
            task.end();
        }
        let mut other = client.task("log").unwrap();
        other.begin_released(7);
        other.end();
        let expected = [
            ("control".to_owned(), (9..40).collect()),
            ("log".to_owned(), vec![7]),
        ];
        assert_eq!(seen(), expected);
    }

    /// Plays a program: reads its jobs as the follower does while they are written.
    #[test]
    fn jobs_are_read_as_they_are_reported_and_lost_ones_are_told() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("page");
        prepare_page(&path, false).unwrap();
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .open(&path)
            .unwrap();
        let mut child = std::process::Command::new("/bin/sleep");
        let child = child.arg("60").process_group(0).spawn();
        let mut started = Started {
            map: Map::of(&file).unwrap(),
            pid: child.unwrap().id().cast_signed(),
            ended: None,
            task: Watched::of(None),
            beside: Beside::default(),
        };
        let name = std::ffi::CString::new(path.to_str().unwrap()).unwrap();
        let client = timecell_client::Client::open(&name).unwrap();
        let mut task = client.task("control").unwrap();
        let (mut kept, mut following) = (Kept::default(), following(1_000));
        for release in 0..40 {
            task.begin_at(release * 1_000, release * 1_000 + 1);
            task.end_at(release * 1_000 + 2);
            if release % 20 == 19 {
                assert!(
                    !started
                        .read(&mut following, &mut kept)
                        .map_err(|_| ())
                        .unwrap()
                );
            }
        }
        assert_eq!(kept.0.len(), 40);
        assert_eq!(following.tally.executed, 40);
        for release in 40..80 {
            task.begin_at(release * 1_000, release * 1_000 + 1);
            task.end_at(release * 1_000 + 2);
        }
        let told = started.read(&mut following, &mut kept);
        assert_eq!(
            told.map_err(|(stage, _)| stage as u32),
            Err(Stage::Lost as u32)
        );
        // On a busy machine the program may not have had the cpu yet.
        let has_run = |_: u32| {
            std::thread::sleep(std::time::Duration::from_millis(10));
            started.cpu_ns() > 0
        };
        assert!((0..1_000).any(has_run));
        drop(started);
    }
}
