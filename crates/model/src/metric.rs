//! The times measured of a job.

use serde::{Deserialize, Serialize};

use crate::Work;

choice! {
    /// A time measured of a job, in ns.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Metric: tag {
        /// Start minus release.
        WakeupLatency = "wakeup_latency",
        /// End minus start, including preemption: the thesis's figure.
        ExecutionTime = "execution_time",
        /// End minus release.
        ResponseTime = "response_time",
        /// From the request to start a program until the kernel runs it.
        StartTime = "start_time",
        /// From SIGTERM to the end of a program.
        ExitTime = "exit_time",
    }
}

impl Metric {
    /// The times measured of a job of this work; the first metric is the one that is compared.
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
