//! The instructions of the coordinator to a probe, as command-line words `key=value`.

use std::path::PathBuf;

use host::sched::Class;
use model::{Counters, Pacing, Timetable, Work};

/// The process that sets class and affinity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClassBy {
    /// The probe itself.
    Cell,
    /// The coordinator, from outside, before it grants the permit.
    Coordinator,
}

/// How the cell waits for the release.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BarrierKind {
    /// Futex on the shared page, then an absolute sleep: no polling.
    Futex,
    /// Checks every 1 ms whether a file exists, as the thesis's scripts do. Only for comparison.
    PollFile(PathBuf),
}

/// SCHED_DEADLINE for the thread that measures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadlineArgs {
    /// Cpu time of each period, ns.
    pub runtime_ns: u64,
    /// Relative deadline, ns.
    pub deadline_ns: u64,
    /// The period, ns.
    pub period_ns: u64,
    /// Every cpu of its root domain: the kernel does not accept a deadline thread that may use fewer.
    pub cpus: Vec<u32>,
}

impl DeadlineArgs {
    /// The class that the kernel is asked for.
    pub fn class(&self) -> Class {
        Class::Deadline {
            runtime_ns: self.runtime_ns,
            deadline_ns: self.deadline_ns,
            period_ns: self.period_ns,
        }
    }

    fn to_word(&self) -> String {
        format!(
            "deadline={},{},{}@{}",
            self.runtime_ns,
            self.deadline_ns,
            self.period_ns,
            host::cpus::format_list(&self.cpus)
        )
    }

    fn from_value(value: &str) -> Option<DeadlineArgs> {
        let (times, cpus) = value.split_once('@')?;
        let times: Vec<u64> = (times.split(','))
            .map(|time| time.parse().ok())
            .collect::<Option<_>>()?;
        let [runtime_ns, deadline_ns, period_ns] = times.try_into().ok()?;
        let cpus = host::cpus::parse_list(cpus).ok()?;
        (!cpus.is_empty()).then_some(DeadlineArgs {
            runtime_ns,
            deadline_ns,
            period_ns,
            cpus,
        })
    }
}

/// Everything a probe needs to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbeArgs {
    /// The control page, as seen from inside the cell.
    pub control: PathBuf,
    /// The cell's slot in it.
    pub slot: usize,
    /// The samples file, as seen from inside the cell; `None`: only stamp the start.
    pub samples: Option<PathBuf>,
    /// Whether that file is a ring that the coordinator empties during the run, instead of having room for every job.
    pub ring: bool,
    /// The work of a job.
    pub work: Work,
    /// How releases are laid out.
    pub pacing: Pacing,
    /// Time between releases, ns.
    pub period_ns: i64,
    /// Activations.
    pub jobs: u32,
    /// SCHED_FIFO priority, or `None` for best effort.
    pub fifo: Option<u8>,
    /// Whether it runs out of band, as a thread of EVL with the priority above.
    pub oob: bool,
    /// SCHED_DEADLINE instead of FIFO or best effort; then the thread is not pinned.
    pub deadline: Option<DeadlineArgs>,
    /// Cpu to be pinned to.
    pub cpu: u32,
    /// The process that sets class and affinity.
    pub class_by: ClassBy,
    /// How to wait.
    pub barrier: BarrierKind,
    /// Rest between the stamp of the start and the first release, ns: a peer on the same cpu stamps its start before
    /// anybody works. 0: none.
    pub rest_ns: i64,
    /// Whether the thread counts its own activations; the samples file then has room for the counts. Windows are read
    /// from outside and are none of its business.
    pub counters: Counters,
    /// The program that does the jobs and its arguments, for [`Work::Program`] and [`Work::Endless`]; its path as seen from inside the cell.
    pub program: Vec<String>,
    /// Where that program reports its jobs, as seen from inside the cell; `None`: each execution of it is a job.
    pub page: Option<PathBuf>,
    /// The tasks of that program: the first is compared, the others are recorded beside it. Empty: the one that it opens first.
    pub tasks: Vec<ReportedArgs>,
    /// Its turns, where cells take turns; their period is the one above.
    pub turns: Option<TurnsArgs>,
}

/// A task of a program that reports its jobs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportedArgs {
    /// The name under which it is opened.
    pub name: String,
    /// Time between its releases, ns.
    pub period_ns: i64,
    /// Most activations that are recorded.
    pub jobs: u32,
}

impl ReportedArgs {
    fn to_word(&self) -> String {
        format!("task={},{},{}", self.period_ns, self.jobs, self.name)
    }

    fn from_value(value: &str) -> Option<ReportedArgs> {
        let mut words = value.splitn(3, ',');
        let args = ReportedArgs {
            period_ns: words.next()?.parse().ok()?,
            jobs: words.next()?.parse().ok()?,
            name: words.next()?.to_owned(),
        };
        (args.period_ns > 0).then_some(args)
    }
}

/// A cell's part in a timetable, but for the period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TurnsArgs {
    /// Jobs of a turn.
    pub jobs: u32,
    /// Periods by which a turn is longer than they take.
    pub extra: u32,
    /// Arms that take turns.
    pub arms: u32,
    /// The index of this cell's arm.
    pub arm: u32,
    /// Seed from which the order is drawn.
    pub seed: u64,
}

impl TurnsArgs {
    fn to_word(self) -> String {
        format!(
            "turns={},{},{},{},{}",
            self.jobs, self.extra, self.arms, self.arm, self.seed
        )
    }

    fn from_value(value: &str) -> Option<TurnsArgs> {
        let mut words = value.split(',');
        let args = TurnsArgs {
            jobs: words.next()?.parse().ok()?,
            extra: words.next()?.parse().ok()?,
            arms: words.next()?.parse().ok()?,
            arm: words.next()?.parse().ok()?,
            seed: words.next()?.parse().ok()?,
        };
        (words.next().is_none() && args.timetable(1).is_possible()).then_some(args)
    }

    /// The timetable of a task of this period, ns.
    pub fn timetable(self, period_ns: i64) -> Timetable {
        Timetable {
            jobs: self.jobs,
            extra: self.extra,
            period_ns,
            arms: self.arms,
            arm: self.arm,
            seed: self.seed,
        }
    }
}

/// A word that is not understood. Occurs only when versions are mixed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("probe: {0}")]
pub struct ArgsError(pub(crate) String);

impl Default for ProbeArgs {
    /// Defaults of omitted words: nothing is recorded, at best effort, on cpu 0.
    fn default() -> ProbeArgs {
        ProbeArgs {
            control: PathBuf::new(),
            slot: 0,
            samples: None,
            ring: false,
            work: Work::Timer,
            pacing: Pacing::Periodic,
            period_ns: 0,
            jobs: 0,
            fifo: None,
            oob: false,
            deadline: None,
            cpu: 0,
            class_by: ClassBy::Cell,
            barrier: BarrierKind::Futex,
            rest_ns: 0,
            counters: Counters::None,
            program: Vec::new(),
            page: None,
            tasks: Vec::new(),
            turns: None,
        }
    }
}

impl ProbeArgs {
    /// The words that follow `timecell probe run`.
    pub fn to_words(&self) -> Vec<String> {
        let mut words = vec![
            format!("control={}", self.control.display()),
            format!("slot={}", self.slot),
            format!("period={}", self.period_ns),
            format!("jobs={}", self.jobs),
            format!("cpu={}", self.cpu),
        ];
        match self.work {
            Work::Mac { steps } => words.push(format!("mac={steps}")),
            // A task's work becomes steps once it is calibrated; until then it is none.
            Work::Timer | Work::Busy => words.push("timer".to_owned()),
            Work::Program | Work::Endless => {
                words.extend(self.program.iter().map(|word| format!("program={word}")));
                words.extend((self.work == Work::Endless).then(|| "endless".to_owned()));
            }
        }
        words.extend((self.page.iter()).map(|page| format!("page={}", page.display())));
        if self.pacing == Pacing::Relative {
            words.push("relative".to_owned());
        }
        if let Some(samples) = &self.samples {
            words.push(format!("samples={}", samples.display()));
        }
        if self.ring {
            words.push("ring".to_owned());
        }
        if let Some(priority) = self.fifo {
            words.push(format!("fifo={priority}"));
        }
        words.extend(self.oob.then(|| "oob".to_owned()));
        words.extend(self.deadline.as_ref().map(DeadlineArgs::to_word));
        if self.class_by == ClassBy::Coordinator {
            words.push("class-from-outside".to_owned());
        }
        if let BarrierKind::PollFile(path) = &self.barrier {
            words.push(format!("poll={}", path.display()));
        }
        if self.rest_ns > 0 {
            words.push(format!("rest={}", self.rest_ns));
        }
        match self.counters {
            Counters::None | Counters::Windows => {}
            Counters::WhereCheap => words.push("count=cheap".to_owned()),
            Counters::Activations => words.push("count=each".to_owned()),
        }
        words.extend(self.tasks.iter().map(ReportedArgs::to_word));
        words.extend(self.turns.map(TurnsArgs::to_word));
        words
    }

    /// Reads the words back.
    ///
    /// # Errors
    /// Names the word that is missing or not understood.
    pub fn from_words(words: &[String]) -> Result<ProbeArgs, ArgsError> {
        let mut args = ProbeArgs::default();
        for word in words {
            let (key, value) = word.split_once('=').unwrap_or((word, ""));
            let bad = || ArgsError(format!("cannot read `{word}`"));
            match key {
                "control" => args.control = value.into(),
                "slot" => args.slot = value.parse().map_err(|_| bad())?,
                "period" => args.period_ns = value.parse().map_err(|_| bad())?,
                "jobs" => args.jobs = value.parse().map_err(|_| bad())?,
                "cpu" => args.cpu = value.parse().map_err(|_| bad())?,
                "mac" => {
                    let steps = value.parse().map_err(|_| bad())?;
                    args.work = Work::Mac { steps };
                }
                "timer" => args.work = Work::Timer,
                "program" => {
                    args.work = Work::Program;
                    args.program.push(value.to_owned());
                }
                "endless" => args.work = Work::Endless,
                "page" => args.page = Some(value.into()),
                "relative" => args.pacing = Pacing::Relative,
                "ring" => args.ring = true,
                "samples" => args.samples = Some(value.into()),
                "fifo" => args.fifo = Some(value.parse().map_err(|_| bad())?),
                "oob" => args.oob = true,
                "deadline" => {
                    args.deadline = Some(DeadlineArgs::from_value(value).ok_or_else(bad)?);
                }
                "class-from-outside" => args.class_by = ClassBy::Coordinator,
                "rest" => args.rest_ns = value.parse().map_err(|_| bad())?,
                "count" => {
                    args.counters = match value {
                        "cheap" => Counters::WhereCheap,
                        "each" => Counters::Activations,
                        _ => return Err(bad()),
                    }
                }
                "task" => (args.tasks).push(ReportedArgs::from_value(value).ok_or_else(bad)?),
                "turns" => args.turns = Some(TurnsArgs::from_value(value).ok_or_else(bad)?),
                "poll" => args.barrier = BarrierKind::PollFile(value.into()),
                _ => return Err(bad()),
            }
        }
        if args.control.as_os_str().is_empty() {
            return Err(ArgsError("no `control=` was given".to_owned()));
        }
        if args.samples.is_some() && (args.period_ns < 1 || args.jobs < 1) {
            return Err(ArgsError("samples need `period=` and `jobs=`".to_owned()));
        }
        Ok(args)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn words_and_back(
            slot in 0usize..5000, period in 1i64..i64::MAX, jobs in 1u32.., cpu in any::<u32>(),
            steps in prop::option::of(any::<u32>()), fifo in prop::option::of(1u8..=99),
            samples in any::<bool>(), ring in any::<bool>(), relative in any::<bool>(), oob in any::<bool>(), outside in any::<bool>(), poll in any::<bool>(),
            rest in 0i64..1_000_000_000, deadline in prop::option::of(any::<[u64; 3]>()), also in 0u32..100,
            counters in prop::sample::select(vec![Counters::None, Counters::WhereCheap, Counters::Activations]),
            turns in prop::option::of((1u32.., any::<u32>(), 1u32..=64, any::<u64>())),
            program in prop::collection::vec("\\PC{1,9}", 0..4), page in any::<bool>(), endless in any::<bool>(),
            tasks in prop::collection::vec(("\\PC{1,9}", 1i64.., any::<u32>()), 0..3),
        ) {
            let args = ProbeArgs {
                control: "/cell/control".into(),
                slot,
                samples: samples.then(|| "/cell/0.samples".into()),
                ring,
                work: match steps {
                    _ if !program.is_empty() && endless => Work::Endless,
                    _ if !program.is_empty() => Work::Program,
                    Some(steps) => Work::Mac { steps },
                    None => Work::Timer,
                },
                program,
                page: page.then(|| "/cell/0.page".into()),
                pacing: if relative { Pacing::Relative } else { Pacing::Periodic },
                period_ns: period,
                jobs,
                fifo,
                oob,
                deadline: deadline.map(|[runtime_ns, deadline_ns, period_ns]| DeadlineArgs {
                    runtime_ns,
                    deadline_ns,
                    period_ns,
                    cpus: vec![also, also + 2],
                }),
                cpu,
                class_by: if outside { ClassBy::Coordinator } else { ClassBy::Cell },
                barrier: if poll { BarrierKind::PollFile("/cell/GO".into()) } else { BarrierKind::Futex },
                rest_ns: rest,
                counters,
                tasks: (tasks.into_iter())
                    .map(|(name, period_ns, jobs)| ReportedArgs { name, period_ns, jobs })
                    .collect(),
                turns: turns.map(|(jobs, extra, arms, seed)| TurnsArgs { jobs, extra, arms, arm: arms - 1, seed }),
            };
            prop_assert_eq!(ProbeArgs::from_words(&args.to_words()), Ok(args));
        }

        #[test]
        fn no_deadline_panics(value in "[0-9,@-]{0,20}") {
            let _ = ProbeArgs::from_words(&["control=/c".to_owned(), format!("deadline={value}")]);
        }

        #[test]
        fn no_words_panic(words in prop::collection::vec("\\PC{0,20}", 0..6)) {
            let _ = ProbeArgs::from_words(&words);
        }
    }
}
