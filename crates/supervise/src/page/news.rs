//! The result of scanning a page.

/// The changes in one slot since the last scan. All of it is the cell's word: its times are plausible, not proven.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct News {
    /// The slot: the index of the task in the cell's declaration.
    pub slot: usize,
    /// Jobs that are over, in order; at most a ring of them.
    pub jobs: Vec<Job>,
    /// Jobs that are over and were not seen: written over before this scan, or with times that cannot be.
    pub unseen: u64,
    /// How many of the unseen jobs were late, by the application's own count; at most [`News::unseen`].
    pub unseen_late: u64,
    /// The job that runs now.
    pub running: Option<Running>,
    /// Heartbeats since the last scan.
    pub heartbeats: u64,
    /// The application's own counts.
    pub totals: Totals,
    /// The first thing that an honest application cannot have written.
    pub nonsense: Option<Nonsense>,
}

/// A job that is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Job {
    /// Its number, from 0.
    pub number: u64,
    /// When it was released; CLOCK_MONOTONIC, ns, as all times here.
    pub release_ns: i64,
    /// When it began.
    pub begin_ns: i64,
    /// When it ended; `None`: it was abandoned.
    pub end_ns: Option<i64>,
}

impl Job {
    /// From its release to its end; `None` for an abandoned one.
    pub fn response_ns(&self) -> Option<i64> {
        Some(self.end_ns?.saturating_sub(self.release_ns))
    }
}

/// A job that has begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Running {
    /// Its number.
    pub number: u64,
    /// When it was released; CLOCK_MONOTONIC, ns.
    pub release_ns: i64,
    /// When it began.
    pub begin_ns: i64,
}

/// Counts of the application since the cell was started, as it keeps them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// Jobs begun.
    pub begun: u64,
    /// Jobs over.
    pub ended: u64,
    /// Jobs over with a response time beyond the deadline.
    pub late: u64,
    /// Jobs begun and never ended.
    pub abandoned: u64,
    /// Longest response time.
    pub worst_response_ns: i64,
    /// Heartbeats.
    pub heartbeats: u64,
    /// Sum of the response times that are counted in buckets, ns.
    pub responses_ns: u64,
}

/// Contents that an application that follows the protocol cannot have written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Nonsense {
    /// The number of jobs has decreased.
    #[error("the number of jobs went back from {from} to {to}")]
    WentBack {
        /// From here.
        from: u64,
        /// To here.
        to: u64,
    },
    /// More jobs have ended than have begun.
    #[error("{ended} jobs have ended but only {begun} have begun")]
    Counters {
        /// Jobs begun.
        begun: u64,
        /// Jobs over.
        ended: u64,
    },
    /// A job's record holds another job.
    #[error("the record of job {job} holds another job")]
    Record {
        /// The job.
        job: u64,
    },
    /// A job ends before it begins or is released, or in the future.
    #[error("the times of job {job} are impossible")]
    Times {
        /// The job.
        job: u64,
    },
}
