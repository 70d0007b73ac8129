//! When jobs are released.

use super::Random;
use timecell_analysis::Task;

/// One activation.
#[derive(Debug, Clone, Copy)]
pub struct Job {
    pub arrival: u64,
    pub release: u64,
    pub work: u64,
    /// Absolute.
    pub deadline: u64,
}

/// A way to release the jobs of a task.
#[derive(Debug, Clone, Copy)]
pub enum Releases {
    /// The first job is released at this instant as late after its arrival as its jitter allows, all others as early
    /// as they can be: the densest releases from there on.
    DensestFrom(u64),
    /// The first arrival about here, then at random distances and with random jitter and work.
    Random(u64),
    /// Arrivals only at `phase + k * every`, from `from` on.
    Bound { from: u64, phase: u64, every: u64 },
}

impl Releases {
    pub fn jobs(self, task: &Task, until: u64, random: &mut Random) -> Vec<Job> {
        let mut jobs: Vec<Job> = Vec::new();
        let refill = |at: u64| match self {
            Releases::Bound { phase, every, .. } => {
                phase + at.saturating_sub(phase).div_ceil(every) * every
            }
            _ => at,
        };
        let mut arrival = refill(match self {
            Releases::DensestFrom(first) => first.saturating_sub(task.jitter),
            Releases::Random(from) => from + random.between(0, task.period),
            Releases::Bound { from, .. } => from,
        });
        while arrival < until {
            let (jitter, work) = match self {
                Releases::DensestFrom(first) if jobs.is_empty() => (first - arrival, task.wcet),
                Releases::DensestFrom(_) | Releases::Bound { .. } => (0, task.wcet),
                Releases::Random(_) if random.percent(70) => {
                    (random.between(0, task.jitter), task.wcet)
                }
                Releases::Random(_) => {
                    (random.between(0, task.jitter), random.between(1, task.wcet))
                }
            };
            let before = jobs.last().map_or(0, |job| job.release);
            jobs.push(Job {
                arrival,
                release: before.max(arrival + jitter),
                work,
                deadline: arrival.saturating_add(task.deadline),
            });
            let more = match self {
                Releases::Random(_) if random.percent(30) => random.between(1, task.period),
                _ => 0,
            };
            arrival = refill(arrival + task.period + more);
        }
        jobs
    }

    /// Work without end from `from` on, to use up a server's budget with the lowest priority inside.
    pub fn endless(from: u64) -> Vec<Job> {
        vec![Job {
            arrival: from,
            release: from,
            work: u64::MAX,
            deadline: u64::MAX,
        }]
    }

    /// So much work at one instant, at the lowest priority inside.
    pub fn once(at: u64, work: u64) -> Vec<Job> {
        vec![Job {
            arrival: at,
            release: at,
            work,
            deadline: u64::MAX,
        }]
    }
}
