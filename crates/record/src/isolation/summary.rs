//! The summary of an isolation study.

use model::Enforcer;
use model::Requirement;
use serde::{Deserialize, Serialize};

use super::Arm;
use crate::document::Document;
use crate::ground::{Budget, Misses, NotMeasured};

/// `summary.json` of a study of isolation. Computed from the record, and computable again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct IsolationSummary {
    /// [`ISOLATION_SUMMARY_SCHEMA`](super::ISOLATION_SUMMARY_SCHEMA).
    pub schema: u64,
    /// Name of the run's directory.
    pub run: String,
    /// Length of an overrunning attacker's job, as a multiple of the declared wcet.
    pub overrun: f64,
    /// One entry for each utilisation, load and arm, in this order.
    pub arms: Vec<ArmSummary>,
    /// One entry for each enforcer, load by load, over all utilisations at which it took part.
    pub standings: Vec<Standing>,
    /// One entry for each budget under each enforcer.
    pub received: Vec<ReceivedSummary>,
    /// Parts not measured, with the reason.
    pub not_measured: Vec<NotMeasured>,
    /// Requirements that the machine did not meet.
    pub unmet: Vec<Requirement>,
    /// Failures, as sentences.
    pub failures: Vec<String>,
}

impl Document for IsolationSummary {
    const FILE: &'static str = "summary.json";
    const SCHEMA: u64 = super::ISOLATION_SUMMARY_SCHEMA;
}

/// One arm at one utilisation beside one load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ArmSummary {
    /// Declared utilisation of both cells together, in thousandths of a cpu.
    pub utilisation_permille: u32,
    /// The load's name; `None`: idle.
    pub load: Option<String>,
    /// The arm.
    pub arm: Arm,
    /// The victim's deadlines.
    pub victim: Misses,
    /// The attacker's; `None` where it was absent.
    pub attacker: Option<Misses>,
    /// Cpu time that the host took (steal time), ns; `None` if the kernel does not report it.
    pub steal_ns: Option<u64>,
}

/// Misses of an arm compared with those of the same sets with the victim alone.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "verdict")]
pub enum Against {
    /// The victim missed nothing.
    NoMiss {
        /// With 95 % confidence, fewer than this share of trials has a miss.
        at_most: f64,
    },
    /// It missed some, but not more than alone as far as these trials show.
    WithinNoise {
        /// Probability of at least this many trials with more misses than alone, if both were the same.
        probability: f64,
    },
    /// It missed more than alone.
    Beyond {
        /// As above, below 0.05.
        probability: f64,
    },
    /// Too few trials: even if all had more misses than alone, that would not be evidence.
    TooFew,
}

/// How one enforcer, or none, protected the victim from an attacker that overran.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Standing {
    /// The enforcer; `None`: nothing.
    pub enforcer: Option<Enforcer>,
    /// The load's name; `None`: idle.
    pub load: Option<String>,
    /// Utilisations at which it took part, in thousandths.
    pub utilisations_permille: Vec<u32>,
    /// The victim's deadlines.
    pub victim: Misses,
    /// Those of the same sets with the victim alone.
    pub alone: Misses,
    /// Pairs of trials of the same set in which the victim missed more than alone, and fewer.
    pub pairs: (u64, u64),
    /// The verdict.
    pub against: Against,
}

/// The supply of one budget to the cells.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReceivedSummary {
    /// The budget.
    pub held: Budget,
    /// Number of trials.
    pub trials: u32,
    /// Whole periods that were evaluated, from the second of each trial on: the first includes time the kernel still owed.
    pub periods: u64,
    /// Received share of the grant in these periods.
    pub received: f64,
    /// Share of the grant in the whole trial that the kernel billed.
    pub billed: f64,
    /// The share of its budget received in one period.
    pub each: PeriodShares,
    /// The verdict.
    pub verdict: ReceivedVerdict,
}

/// The distribution of the share of the budget received in one period.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PeriodShares {
    /// Minimum.
    pub least: f64,
    /// Quantile 0.05.
    pub low: f64,
    /// Median.
    pub median: f64,
    /// Quantile 0.95.
    pub high: f64,
    /// Maximum.
    pub most: f64,
    /// All of them, in order of time, trial after trial, in thousandths; for pictures.
    pub permille: Vec<u32>,
}

/// Whether cells received their budgets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReceivedVerdict {
    /// Within 2 % of it.
    Within,
    /// Less, but billed within 2 %: interrupts and the host took the rest while the kernel billed the cell.
    TakenByTheHost,
    /// Less.
    Less,
    /// More.
    More,
    /// A tick of cpu time more or less would be a hundredth of it or more.
    TooShort,
}
