//! Progress: the running trial, and how long is left. A bar on a terminal, plain lines elsewhere, always on standard error.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use bench::{Going, Progress};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use record::run::Run;
use record::thresholds::Thresholds;
use record::trial::TrialRecord;
use report::grouped;
use study::judge::Threshold;
use study::{Known, Standing};

use crate::crowd_row;
use crate::out;

/// Printed if only the baseline was measured.
pub const NO_RATIO: &str = "there is no ratio: only the baseline was measured";

/// A duration of a run, ns, as text: `41 s`, `3 min`.
pub fn about(ns: i64) -> String {
    let seconds = (ns.max(0) + 500_000_000) / 1_000_000_000;
    match seconds {
        0..=119 => format!("{seconds} s"),
        _ => format!("{} min", (seconds + 30) / 60),
    }
}

/// Shows the progress of a run.
pub struct Teller {
    rounds: u32,
    total: u32,
    bar: Option<ProgressBar>,
    began: Instant,
    /// The running trial, in words.
    trial: String,
    last_line: Instant,
    /// Whether a row of a crowd was printed.
    rows: bool,
    /// Conditions of `--until`.
    until: Vec<Threshold>,
    /// The thresholds by which the run is judged.
    thresholds: Option<Thresholds>,
    /// Reasons of the failures that were noted.
    failed: Vec<String>,
}

/// Interval between two lines about a running trial, if there is no bar.
const LINE_EVERY: Duration = Duration::from_secs(60);

impl Teller {
    /// A bar if standard error is a terminal, lines otherwise.
    pub fn new(rounds: u32) -> Teller {
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(4));
            let style = ProgressStyle::with_template("[{bar:24}]  {msg}");
            if let Ok(style) = style {
                bar.set_style(style.progress_chars("##-"));
            }
            bar
        });
        Teller {
            rounds,
            total: 0,
            bar,
            began: Instant::now(),
            trial: String::new(),
            last_line: Instant::now(),
            rows: false,
            until: Vec::new(),
            thresholds: None,
            failed: Vec::new(),
        }
    }

    /// With these conditions of `--until`.
    pub fn until(self, until: Vec<Threshold>) -> Teller {
        Teller { until, ..self }
    }

    /// Keeps these thresholds with the run as soon as it begins, so that a killed run is resumed with them.
    pub fn keeping(self, thresholds: Option<Thresholds>) -> Teller {
        Teller { thresholds, ..self }
    }

    /// Takes the bar off the screen; returns the reasons of the failures that were noted.
    pub fn done(self) -> Vec<String> {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
        self.failed
    }
}

impl Progress for Teller {
    fn began(&mut self, run: &Run, trials: u32) {
        self.total = trials;
        match &self.bar {
            Some(bar) => bar.set_length(trials.into()),
            None => out::note(&format!("run     {}", run.dir().display())),
        }
        if let Some(Err(error)) = self.thresholds.as_ref().map(|kept| run.write(kept)) {
            self.note(&format!("the thresholds could not be kept: {error}"));
        }
    }

    fn trial(&mut self, number: u32, round: u32, name: &str, left_ns: i64) {
        let left = about(left_ns);
        self.trial = format!("round {round} of {}, {name}", self.rounds);
        self.last_line = Instant::now();
        match &self.bar {
            Some(bar) => {
                bar.set_position(u64::from(number.saturating_sub(1)));
                bar.set_message(format!(
                    "round {round} of {}, {name}   about {left} left",
                    self.rounds
                ));
                bar.tick();
            }
            None => out::note(&format!(
                "{:>6.1} s  trial {number} of {}: round {round} of {}, {name}; about {left} left",
                self.began.elapsed().max(Duration::ZERO).as_secs_f64(),
                self.total,
                self.rounds
            )),
        }
    }

    fn going(&mut self, going: &Going) {
        let text = standing(going);
        match &self.bar {
            Some(bar) => bar.set_message(format!("{}   {text}", self.trial)),
            None if self.last_line.elapsed() >= LINE_EVERY => {
                self.last_line = Instant::now();
                out::note(&format!(
                    "{:>6.1} s  {}; {text}",
                    self.began.elapsed().as_secs_f64(),
                    self.trial
                ));
            }
            None => {}
        }
    }

    fn gathering(&mut self, created: u32, asked: u32) {
        if let Some(bar) = &self.bar {
            bar.set_message(format!(
                "{}   {} of {} cells created",
                self.trial,
                grouped(created),
                grouped(asked)
            ));
        }
    }

    fn ended(&mut self, record: &TrialRecord) {
        let Some(row) = crowd_row::row(record) else {
            return;
        };
        let first = !std::mem::replace(&mut self.rows, true);
        let text = match first {
            true => format!("{}\n{row}", crowd_row::HEAD),
            false => row,
        };
        match &self.bar {
            Some(bar) => bar.suspend(|| out::note(&text)),
            None => out::note(&text),
        }
    }

    fn decided(&mut self, run: &Run, round: u32) -> bool {
        if !self.until.is_empty() {
            return self.is_known(run, round);
        }
        let standing = match Standing::of(run) {
            Ok(standing) => standing,
            Err(error) => {
                self.note(&format!("the state of the run is unknown: {error}"));
                return false;
            }
        };
        let open = standing.undecided.len();
        self.note(&match open {
            // More rounds would not produce one.
            _ if standing.compared == 0 => format!("after round {round}: {NO_RATIO}"),
            0 => {
                format!("after round {round}: every ratio is known well enough, or differs from 1")
            }
            _ => format!(
                "after round {round}: {open} of {} ratios not known well enough: {}",
                standing.compared,
                standing.undecided.join(", ")
            ),
        });
        open == 0
    }

    fn failed(&mut self, what: &str, why: &str) {
        self.note(&format!("{what} failed: {why}"));
        self.failed.push(why.to_owned());
    }

    fn note(&mut self, text: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| out::note(&format!("note    {text}"))),
            None => out::note(&format!("note    {text}")),
        }
    }
}

impl Teller {
    /// Whether the conditions of `--until` are known; notes those that are not.
    fn is_known(&mut self, run: &Run, round: u32) -> bool {
        let known = match Known::of(run, &self.until) {
            Ok(known) => known,
            Err(error) => {
                self.note(&format!("the state of the run is unknown: {error}"));
                return false;
            }
        };
        self.note(&match known.open.len() {
            0 => format!("after round {round}: known"),
            open => format!(
                "after round {round}: {open} of {} not known: {}",
                known.asked,
                known.open.join(", ")
            ),
        });
        known.open.is_empty()
    }
}

/// `worst wake-up latency 1.2 ms, 0 skipped, 0 lost; about 3 min left`.
fn standing(going: &Going) -> String {
    let worst = match going.worst_ns {
        Some(ns) => format!("worst {} {}", going.metric.title(), report::time(ns as f64)),
        None => "nothing recorded yet".to_owned(),
    };
    format!(
        "{:.1} % of jobs, {worst}, {} skipped, {} lost; about {} left",
        100.0 * going.counts.accounted() as f64 / going.planned.max(1) as f64,
        grouped(going.counts.skipped),
        grouped(going.counts.lost),
        about(going.left_ns)
    )
}

/// Shows how many of many equal things are done: a bar on a terminal, nothing elsewhere, because it takes only seconds.
pub struct Counting {
    bar: Option<ProgressBar>,
}

impl Counting {
    /// Starts counting to `total` things, called `what`.
    pub fn new(total: u64, what: &str) -> Counting {
        let bar = std::io::stderr().is_terminal().then(|| {
            let target = ProgressDrawTarget::stderr_with_hz(10);
            let bar = ProgressBar::with_draw_target(Some(total), target);
            let style = ProgressStyle::with_template(&format!(
                "[{{bar:24}}]  {{pos}} of {{len}} {what}   about {{eta}} left"
            ));
            if let Ok(style) = style {
                bar.set_style(style.progress_chars("##-"));
            }
            bar
        });
        Counting { bar }
    }

    /// Sets how many are done; calls from several threads may come out of order.
    pub fn at(&self, done: u64) {
        if let Some(bar) = self.bar.as_ref().filter(|bar| bar.position() < done) {
            bar.set_position(done);
        }
    }

    /// Takes the bar off the screen.
    pub fn done(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn how_a_long_trial_stands() {
        let going = bench::Going {
            metric: record::summary::Metric::WakeupLatency,
            worst_ns: Some(1_234_000),
            counts: record::histogram::Counts {
                executed: 4_000,
                skipped: 900,
                lost: 100,
            },
            planned: 10_000,
            left_ns: 60_000_000_000,
        };
        assert_eq!(
            super::standing(&going),
            "50.0 % of jobs, worst wake-up latency 1.23 ms, 900 skipped, 100 lost; about 60 s left"
        );
    }

    #[test]
    fn times_are_rounded_for_people() {
        for (ns, text) in [
            (-5, "0 s"),
            (1_400_000_000, "1 s"),
            (119_000_000_000, "119 s"),
            (185_000_000_000, "3 min"),
        ] {
            assert_eq!(super::about(ns), text);
        }
    }
}
