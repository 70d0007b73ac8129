//! The other tasks of a program that reports: read in the same time as the one that is compared, each into a samples file of its own.

use std::fs::OpenOptions;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use record::samples::layout::{Header, Sample};
use timecell_client::layout::RING;

use super::page::{Job, Watched};
use super::reports::Following;
use crate::args::ProbeArgs;
use crate::control::Stage;
use crate::map::Map;
use crate::measure::{Recorder, Sheet};

/// Where the jobs of the task of this number are recorded, from 2: next to those of the first.
pub fn samples_beside(samples: &Path, number: usize) -> PathBuf {
    samples.with_extension(format!("task-{number}.samples"))
}

/// All of them.
#[derive(Default)]
pub(crate) struct Beside(Vec<Other>);

struct Other {
    watched: Watched,
    map: Map,
    period_ns: i64,
    taken: Taken,
}

/// Its jobs so far.
struct Taken {
    /// Most of them.
    jobs: u32,
    following: Following,
    /// When the job before ended, if that is known.
    before: Option<i64>,
}

impl Beside {
    /// Maps their files.
    pub(super) fn of(args: &ProbeArgs) -> io::Result<Beside> {
        let Some(samples) = &args.samples else {
            return Ok(Beside::default());
        };
        let other = |(at, task): (usize, &crate::args::ReportedArgs)| {
            let path = samples_beside(samples, at + 1);
            let file = OpenOptions::new().read(true).write(true).open(path)?;
            let map = Map::of(&file)?;
            map.touch();
            Sheet::new(&map, task.jobs).ok_or(io::ErrorKind::UnexpectedEof)?;
            Ok(Other {
                watched: Watched::of(Some(task.name.clone())),
                map,
                period_ns: task.period_ns,
                taken: Taken {
                    jobs: task.jobs,
                    following: Following::of(task.period_ns, task.jobs),
                    before: None,
                },
            })
        };
        let tasks = args.tasks.iter().enumerate().skip(1);
        Ok(Beside(tasks.map(other).collect::<io::Result<_>>()?))
    }

    /// The shortest of their periods, ns.
    pub(super) fn shortest_ns(&self) -> i64 {
        (self.0.iter().map(|other| other.period_ns).min()).unwrap_or(i64::MAX)
    }

    /// Records the jobs that are over and were not read yet; of a program that takes turns, those of this turn.
    pub(super) fn read(
        &mut self,
        page: &Map,
        turn: Option<Range<i64>>,
    ) -> Result<(), (Stage, i32)> {
        let mut room = [Job::default(); RING];
        for other in &mut self.0 {
            let Other {
                watched,
                map,
                taken,
                ..
            } = other;
            let read = match watched.look(page, &mut room) {
                // It is not the one that is compared: its newest jobs are enough.
                Err((Stage::Lost, _)) => {
                    watched.skip(page);
                    taken.before = None;
                    watched.look(page, &mut room).unwrap_or_default()
                }
                read => read?,
            };
            let Some(mut sheet) = Sheet::behind(map, taken.following.tally.executed) else {
                continue;
            };
            for job in read {
                match &turn {
                    None => {
                        taken.following.take(job, &mut sheet)?;
                    }
                    Some(turn) => taken.take_in_turn(job, turn, &mut sheet),
                }
            }
        }
        Ok(())
    }

    /// Writes the headers: the first one's with each task's own counts and period.
    pub(super) fn write_headers(&self, first: &Header) {
        for other in &self.0 {
            let following = &other.taken.following;
            let Some(mut sheet) = Sheet::behind(&other.map, following.tally.executed) else {
                continue;
            };
            let own = sheet.read_header();
            let activations = (following.last).map_or(0, |(index, _)| index + 1);
            sheet.write_header(&Header {
                count: own.count,
                skipped: activations.saturating_sub(following.tally.executed).into(),
                planned: activations.into(),
                counts_at: own.counts_at,
                period_ns: other.period_ns,
                cpu_time_ns: 0,
                over_declared: 0,
                ..*first
            });
        }
    }
}

impl Taken {
    /// Records a job that was released and over within the turn, and found nothing before it to be done.
    fn take_in_turn<R: Recorder>(&mut self, job: &Job, turn: &Range<i64>, sheet: &mut R) {
        if job.end_ns == 0 || job.begin_ns > job.end_ns || job.release_ns > job.end_ns {
            return;
        }
        let before = self.before.replace(job.end_ns);
        let found_nothing = before.is_none_or(|end| end <= job.release_ns);
        let index = self.following.tally.executed;
        if !turn.contains(&job.release_ns)
            || job.end_ns > turn.end
            || !found_nothing
            || index >= self.jobs
        {
            return;
        }
        sheet.put(Sample {
            index,
            skipped: 0,
            release_ns: job.release_ns,
            start_ns: job.begin_ns,
            end_ns: job.end_ns,
        });
        self.following.tally.executed += 1;
        self.following.last = Some((index, job.release_ns));
    }
}
