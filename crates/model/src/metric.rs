//! What is measured of a job.

use serde::{Deserialize, Serialize};

use crate::Work;

/// What is measured of a job, in ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// Start minus release.
    WakeupLatency,
    /// End minus start, including preemption: the thesis's figure.
    ExecutionTime,
    /// End minus release.
    ResponseTime,
    /// From the request to start a program until the kernel runs it.
    StartTime,
    /// From SIGTERM to the end of a program.
    ExitTime,
}

impl Metric {
    /// All of them.
    pub const ALL: [Metric; 5] = [
        Metric::WakeupLatency,
        Metric::ExecutionTime,
        Metric::ResponseTime,
        Metric::StartTime,
        Metric::ExitTime,
    ];

    /// What is measured of a job of this work; the first metric is the one that is compared.
    pub const fn of_work(work: Work) -> &'static [Metric] {
        match work {
            Work::Mac { .. } | Work::Program => &[
                Metric::ExecutionTime,
                Metric::WakeupLatency,
                Metric::ResponseTime,
            ],
            Work::Endless => &[Metric::StartTime, Metric::ExitTime],
            Work::Timer => &[Metric::WakeupLatency],
            Work::Busy => &[
                Metric::ResponseTime,
                Metric::WakeupLatency,
                Metric::ExecutionTime,
            ],
        }
    }

    /// The name used in files.
    pub const fn tag(self) -> &'static str {
        match self {
            Metric::WakeupLatency => "wakeup_latency",
            Metric::ExecutionTime => "execution_time",
            Metric::ResponseTime => "response_time",
            Metric::StartTime => "start_time",
            Metric::ExitTime => "exit_time",
        }
    }

    /// The word that thresholds have for it.
    pub const fn word(self) -> &'static str {
        match self {
            Metric::WakeupLatency => "latency",
            Metric::ExecutionTime => "execution",
            Metric::ResponseTime => "response",
            Metric::StartTime => "start",
            Metric::ExitTime => "exit",
        }
    }

    /// The name used in tables and pictures.
    pub const fn title(self) -> &'static str {
        match self {
            Metric::WakeupLatency => "wake-up latency",
            Metric::ExecutionTime => "execution time",
            Metric::ResponseTime => "response time",
            Metric::StartTime => "time to start",
            Metric::ExitTime => "time to exit",
        }
    }
}
