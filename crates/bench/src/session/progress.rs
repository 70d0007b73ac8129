//! The caller's view of a run as it goes on.

use record::Metric;
use record::histogram::Counts;
use record::run::Run;
use record::trial::TrialRecord;

/// The caller's view of a run as it goes on.
pub trait Progress {
    /// The run directory exists.
    fn began(&mut self, run: &Run, trials: u32);
    /// A trial begins; `left_ns` is the expected time until the run's end.
    fn trial(&mut self, number: u32, round: u32, name: &str, left_ns: i64);
    /// A trial that keeps histograms goes on; comes about once a second.
    fn going(&mut self, going: &Going);
    /// Cells of a crowd are being created: so many of all are there; comes about once a second.
    fn gathering(&mut self, created: u32, asked: u32) {
        let _ = (created, asked);
    }
    /// A trial has ended and is on record.
    fn ended(&mut self, record: &TrialRecord) {
        let _ = record;
    }
    /// A round has ended after which a run may end early: returns whether all its conditions are decided.
    fn decided(&mut self, run: &Run, round: u32) -> bool {
        let _ = (run, round);
        false
    }
    /// A trial or measurement has failed; the run goes on.
    fn failed(&mut self, what: &str, why: &str) {
        self.note(&format!("{what} failed: {why}"));
    }
    /// Something that the user should know now, one sentence.
    fn note(&mut self, text: &str);
}

/// The state of a trial that keeps histograms.
#[derive(Debug, Clone, Copy)]
pub struct Going {
    /// The primary metric.
    pub metric: Metric,
    /// Its largest value so far, ns.
    pub worst_ns: Option<i64>,
    /// Activations of all cells so far.
    pub counts: Counts,
    /// Activations of all cells that were requested.
    pub planned: u64,
    /// Expected time until the run's end, ns.
    pub left_ns: i64,
}
