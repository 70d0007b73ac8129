//! A program that reports its jobs and takes turns: outside of them it is stopped.
//!
//! It knows nothing of turns and keeps its own releases. When it continues, it finds that some have passed: it skips them, or
//! does those jobs one after the other. Either way it is behind for a while, and its jobs then say nothing about the cell. So
//! its jobs count from the first that was released within the turn and found nothing before it to be done; that one is job 0 of
//! the turn, and the next come each a period later. A turn is some periods longer than its jobs, for catching up. Jobs released
//! outside of turns belong to nobody: they are neither executed nor skipped.

use model::Timetable;
use record::samples::layout::Sample;
use timecell_client::layout::RING;

use super::page::Job;
use super::reports::Started;
use crate::clock;
use crate::control::Stage;
use crate::measure::{Plan, Recorder, Tally};

/// Jobs that a program does late in a turn though it lets go of the past: the one before which it was stopped, and one
/// that was due while it did that.
const LATE_JOBS: u32 = 2;

/// Least time between two looks, ns: the observer has the program's class, and must not take its cpu.
const LEAST_LOOK_NS: i64 = 100_000;

impl Started {
    /// Lets the program run in its turns, of which the first begins at `first_ns`, which is now; then it is asked to end.
    pub fn take_turns<R: Recorder>(
        &mut self,
        plan: &Plan<'_>,
        turns: Timetable,
        sheet: &mut R,
        first_ns: i64,
    ) -> Result<Tally, (Stage, i32)> {
        let before_ns = self.cpu_ns();
        let mut jobs = InTurns::new(turns, plan.jobs, first_ns);
        let laps = plan.jobs.div_ceil(turns.jobs);
        // Some looks for each ring; where a turn fits it, one at its end, when the program is stopped.
        let shortest_ns = self.beside.shortest_ns().min(plan.period_ns);
        let look_ns = (shortest_ns * (RING as i64 / 4)).max(LEAST_LOOK_NS);
        for lap in 0..laps {
            let (begin, end) = (jobs.begin_ns(lap), jobs.end_ns(lap));
            jobs.enter(lap);
            clock::sleep_until(begin);
            self.open_gate();
            self.signal(libc::SIGCONT);
            let mut look = begin + look_ns;
            while end - begin > 3 * look_ns && look < end {
                clock::sleep_until(look);
                self.read_turn(&mut jobs, sheet)?;
                look += look_ns;
            }
            clock::sleep_until(end);
            self.signal(libc::SIGSTOP);
            self.read_turn(&mut jobs, sheet)?;
            if let Some(status) = self.has_ended() {
                return Err(match status {
                    0 => (Stage::EndedEarly, jobs.seen.cast_signed()),
                    status => (Stage::Exit, status),
                });
            }
        }
        let mut tally = jobs.tally;
        if jobs.seen == 0 {
            return Err((Stage::Silent, 0));
        }
        jobs.settle();
        // Turns in which it made up for too much look like skipped activations, and are no fault of the cell's. One that lets go of
        // the past, and was late because the machine stood still, skipped them.
        let behind = laps - jobs.in_time;
        if jobs.in_time < behind && jobs.too_long * 2 >= behind {
            return Err((Stage::Behind, 0));
        }
        tally.skipped = plan.jobs - tally.executed;
        // The part of those that count.
        let used_ns = i128::from(self.cpu_ns() - before_ns);
        tally.program_cpu_ns =
            (used_ns * i128::from(tally.executed) / i128::from(jobs.seen.max(1))) as i64;
        self.end();
        Ok(tally)
    }

    fn read_turn<R: Recorder>(
        &mut self,
        jobs: &mut InTurns,
        sheet: &mut R,
    ) -> Result<(), (Stage, i32)> {
        let mut room = [Job::default(); RING];
        let read = match self.look(&mut room) {
            // A program that catches up does more than the page holds.
            Err((Stage::Lost, _)) if jobs.is_behind() => {
                self.skip();
                jobs.before = None;
                jobs.made_up = RING as u32;
                self.look(&mut room)?
            }
            read => read?,
        };
        for job in read {
            jobs.take(job, sheet)?;
        }
        self.read_beside(jobs.begin_ns(jobs.lap)..jobs.end_ns(jobs.lap))
    }
}

/// The jobs of a program on their way from the page into the record: which of them count, and as which activation.
struct InTurns {
    turns: Timetable,
    jobs: u32,
    origin_ns: i64,
    /// The turn that is looked at.
    lap: u32,
    /// Place in the turn and release of the last job that counts; `None` while the program is behind.
    last: Option<(u32, i64)>,
    /// Its first activation that is not accounted for.
    next: u32,
    /// When the job before ended, whichever it was; `None` if that is not known.
    before: Option<i64>,
    /// Turns in which it had caught up in the time for it.
    in_time: u32,
    /// Whether this turn is one of them.
    is_in_time: bool,
    /// Jobs done in this turn that were released before it.
    made_up: u32,
    /// Turns in which the program made up for the past, and all the time for it was not enough.
    too_long: u32,
    /// Jobs that were read, those that do not count among them.
    seen: u32,
    tally: Tally,
}

impl InTurns {
    fn new(turns: Timetable, jobs: u32, first_ns: i64) -> InTurns {
        InTurns {
            turns,
            jobs,
            origin_ns: first_ns - turns.turn_ns(0),
            lap: 0,
            last: None,
            next: 0,
            before: Some(first_ns),
            in_time: 0,
            is_in_time: false,
            made_up: 0,
            too_long: 0,
            seen: 0,
            tally: Tally::default(),
        }
    }

    /// When the program goes on.
    fn begin_ns(&self, lap: u32) -> i64 {
        self.origin_ns + self.turns.turn_ns(lap)
    }

    /// When it is stopped: the last job has a period, and before the next turn begins there is some time left.
    fn end_ns(&self, lap: u32) -> i64 {
        self.begin_ns(lap) + self.turns.turn_length_ns() + self.turns.period_ns
    }

    /// A turn begins, with the program behind unless it shows the contrary.
    fn enter(&mut self, lap: u32) {
        if lap > self.lap {
            self.settle();
            self.lap = lap;
            self.last = None;
        }
    }

    /// A turn is over: was its time too short for the jobs that the program made up for?
    fn settle(&mut self) {
        self.too_long += u32::from(self.made_up > LATE_JOBS && !self.is_in_time);
        (self.made_up, self.is_in_time) = (0, false);
    }

    fn is_behind(&self) -> bool {
        self.last.is_none()
    }

    /// Records a job if it counts.
    fn take<R: Recorder>(&mut self, job: &Job, sheet: &mut R) -> Result<(), (Stage, i32)> {
        self.seen = self.seen.saturating_add(1);
        // One that was never ended leaves its activation out.
        if job.end_ns == 0 {
            return Ok(());
        }
        if job.begin_ns > job.end_ns || job.release_ns > job.end_ns {
            return Err((Stage::Nonsense, 0));
        }
        while job.release_ns >= self.begin_ns(self.lap + 1) {
            self.enter(self.lap + 1);
        }
        let before = self.before.replace(job.end_ns);
        let within = (self.begin_ns(self.lap)..self.end_ns(self.lap)).contains(&job.release_ns);
        // One that the end of the turn cut in two is an activation skipped.
        let cut = job.end_ns >= self.begin_ns(self.lap + 1);
        let past = job.release_ns < self.begin_ns(self.lap);
        self.made_up = self.made_up.saturating_add(past.into());
        if !within || cut {
            return Ok(());
        }
        let place = match self.last {
            Some((place, release_ns)) => {
                // One that comes up to half a period late leaves none out.
                let passed = job.release_ns.saturating_sub(release_ns) + self.turns.period_ns / 2;
                let steps = u32::try_from(passed / self.turns.period_ns).unwrap_or(0);
                place.saturating_add(steps.max(1))
            }
            None if before.is_some_and(|end| end <= job.release_ns) => {
                let behind_ns = job.release_ns - self.begin_ns(self.lap);
                let in_time = i64::from(self.turns.extra + 1) * self.turns.period_ns;
                self.is_in_time = behind_ns <= in_time;
                self.in_time += u32::from(self.is_in_time);
                0
            }
            None => return Ok(()),
        };
        let index = u64::from(self.lap) * u64::from(self.turns.jobs) + u64::from(place);
        self.last = Some((place, job.release_ns));
        if place >= self.turns.jobs || index >= u64::from(self.jobs) {
            return Ok(());
        }
        let index = index as u32;
        sheet.put(Sample {
            index,
            skipped: index - self.next,
            release_ns: job.release_ns,
            start_ns: job.begin_ns,
            end_ns: job.end_ns,
        });
        self.next = index + 1;
        self.tally.executed += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::kept::Kept;
    use super::*;

    const PERIOD: i64 = 1_000;

    /// Two arms with turns of four jobs and two periods more.
    fn in_turns() -> InTurns {
        let turns = Timetable {
            jobs: 4,
            extra: 2,
            period_ns: PERIOD,
            arms: 2,
            arm: 0,
            seed: 7,
        };
        InTurns::new(turns, 8, 100_000)
    }

    /// Jobs of a program whose first release is at 0 of its own time, as (release, begin, end).
    fn taken(jobs: &mut InTurns, times: &[(i64, i64, i64)]) -> Vec<(u32, u32, i64)> {
        let mut kept = Kept::default();
        for &(release_ns, begin_ns, end_ns) in times {
            let job = Job {
                number: 0,
                release_ns,
                begin_ns,
                end_ns,
            };
            jobs.take(&job, &mut kept).map_err(|_| ()).unwrap();
        }
        let told = |sample: &Sample| (sample.index, sample.skipped, sample.release_ns);
        kept.0.iter().map(told).collect()
    }

    fn short(release: i64) -> (i64, i64, i64) {
        (release, release + 5, release + 105)
    }

    #[test]
    fn releases_outside_of_turns_are_nobodys() {
        let mut jobs = in_turns();
        let (first, second) = (jobs.begin_ns(0), jobs.begin_ns(1));
        let mut times: Vec<(i64, i64, i64)> =
            (0..6).map(|k| short(first + 10 + k * PERIOD)).collect();
        // Stopped before its next release, it does that one late and lets go of the others; one more is late, and then it is in time.
        let due = first + 10 + 6 * PERIOD;
        times.push((due, second + 20, second + 120));
        times.push((second - 300, second + 121, second + 221));
        times.extend((0..5).map(|k| short(second - 300 + (k + 1) * PERIOD)));
        let seen = taken(&mut jobs, &times);
        let base = first + 10;
        let again = second - 300 + PERIOD;
        let expected = [
            (0, 0, base),
            (1, 0, base + PERIOD),
            (2, 0, base + 2 * PERIOD),
            (3, 0, base + 3 * PERIOD),
            (4, 0, again),
            (5, 0, again + PERIOD),
            (6, 0, again + 2 * PERIOD),
            (7, 0, again + 3 * PERIOD),
        ];
        assert_eq!(seen, expected);
        assert_eq!((jobs.tally.executed, jobs.seen, jobs.in_time), (8, 13, 2));
    }

    #[test]
    fn what_makes_up_for_the_past_counts_once_it_is_done_with_it() {
        let mut jobs = in_turns();
        let second = jobs.begin_ns(1);
        jobs.enter(1);
        // Fifteen jobs of 100 ns each that were due before, and the two releases that they delayed.
        let due = |k: i64| second - 15 * PERIOD + 300 + k * PERIOD;
        let mut at = second + 10;
        let mut times = Vec::new();
        for k in 0..17 {
            let begin = at.max(due(k));
            times.push((due(k), begin, begin + 110));
            at = begin + 110;
        }
        times.extend((17..20).map(|k| short(due(k))));
        let seen = taken(&mut jobs, &times);
        // Release 15, at 300 behind the beginning, and 16 were delayed.
        let expected: Vec<(u32, u32, i64)> = (17..20)
            .map(|k| (k as u32 - 13, if k == 17 { 4 } else { 0 }, due(k)))
            .collect();
        assert_eq!((seen, jobs.in_time), (expected, 1));
        assert_eq!(jobs.made_up, 15);
        jobs.settle();
        assert_eq!((jobs.too_long, jobs.made_up), (0, 0));
    }

    /// A turn in which the program does `made_up` jobs of the pause before it, and then nothing until `late_ns` into it.
    fn late(made_up: i64, late_ns: i64) -> u32 {
        let mut jobs = in_turns();
        let second = jobs.begin_ns(1);
        jobs.enter(1);
        let due = |k: i64| second + (k - made_up) * PERIOD;
        let mut times: Vec<_> = (0..made_up)
            .map(|k| (due(k), second + k * 10, second + (k + 1) * 10))
            .collect();
        times.push(short(second + late_ns));
        taken(&mut jobs, &times);
        jobs.settle();
        jobs.too_long
    }

    #[test]
    fn only_what_makes_up_for_the_past_is_too_long_at_it() {
        let long = 4 * PERIOD;
        assert_eq!(late(8, long), 1);
        assert_eq!(late(8, 2 * PERIOD), 0, "it was in time");
        assert_eq!(late(2, long), 0, "it lets go of the past");
    }

    #[test]
    fn a_job_that_the_end_of_a_turn_cuts_is_skipped_and_so_is_one_that_is_left_out() {
        let mut jobs = in_turns();
        let (first, second) = (jobs.begin_ns(0), jobs.begin_ns(1));
        let seen = taken(
            &mut jobs,
            &[
                short(first + 10),
                // One is left out, and the last of the turn lasts beyond it.
                short(first + 10 + 2 * PERIOD),
                (first + 10 + 3 * PERIOD, first + 3_015, second + 50),
                short(second + 500),
            ],
        );
        let expected = [
            (0, 0, first + 10),
            (2, 1, first + 10 + 2 * PERIOD),
            (4, 1, second + 500),
        ];
        assert_eq!(seen, expected);
    }

    #[test]
    fn a_turn_begins_behind() {
        let mut jobs = in_turns();
        let first = jobs.begin_ns(0);
        taken(&mut jobs, &[short(first + 10)]);
        assert!(!jobs.is_behind());
        jobs.enter(0);
        assert!(!jobs.is_behind());
        jobs.enter(1);
        assert!(jobs.is_behind());
    }

    #[test]
    fn after_jobs_that_were_not_read_one_more_is_let_go() {
        let mut jobs = in_turns();
        let second = jobs.begin_ns(1);
        jobs.before = None;
        assert!(jobs.is_behind());
        let seen = taken(&mut jobs, &[short(second + 10), short(second + 1_010)]);
        assert_eq!(seen, [(4, 4, second + 1_010)]);
    }
}
