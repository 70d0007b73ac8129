//! The arguments of the payload that always wants the cpu.

use host::sched::Class;
use record::gaps::MOST_STRETCHES;

use crate::args::ArgsError;

/// The class that the payload takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpinClass {
    /// SCHED_FIFO, pinned to its cpu.
    Fifo {
        /// 1 to 99.
        priority: u8,
    },
    /// SCHED_DEADLINE with its deadline at the end of its period, on all of its cpus: the kernel takes no such thread
    /// that is pinned.
    Deadline {
        /// Runtime, ns.
        budget_ns: u64,
        /// Period, ns.
        period_ns: u64,
    },
}

/// The arguments of the payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SupplyArgs {
    /// The control page, as seen from inside the cell.
    pub control: String,
    /// The cell's slot in it.
    pub slot: usize,
    /// The gaps file, as seen from inside the cell.
    pub gaps: String,
    /// Its class.
    pub class: SpinClass,
    /// Threads of FIFO that want the cpu when it does, one step less urgent; only with FIFO of 2 and more.
    pub beside: u32,
    /// The quota group or time partition of EVL in which it runs, out of band; only with FIFO and nothing beside. `None`: it runs in band.
    pub group: Option<(evl::Kind, i32)>,
    /// Its cpus; one for FIFO.
    pub cpus: Vec<u32>,
    /// Length of each stretch and, within `grid_ns`, the instant at which it begins, ns.
    pub stretches: Vec<(i64, i64)>,
    /// Least time between two stretches, ns.
    pub rest_ns: i64,
    /// Distance between two ticks, ns.
    pub grid_ns: i64,
}

impl SupplyArgs {
    /// The words behind `timecell`.
    pub fn to_words(&self) -> Vec<String> {
        let stretches: Vec<String> = (self.stretches.iter())
            .map(|(length, at)| format!("{length}@{at}"))
            .collect();
        let class = match self.class {
            SpinClass::Fifo { priority } => format!("fifo={priority}"),
            SpinClass::Deadline {
                budget_ns,
                period_ns,
            } => format!("deadline={budget_ns},{period_ns}"),
        };
        let mut words = vec![
            "probe".to_owned(),
            "supply".to_owned(),
            format!("control={}", self.control),
            format!("slot={}", self.slot),
            format!("gaps={}", self.gaps),
            class,
            format!("beside={}", self.beside),
            format!("cpus={}", host::cpus::format_list(&self.cpus)),
            format!("stretches={}", stretches.join(",")),
            format!("rest={}", self.rest_ns),
            format!("grid={}", self.grid_ns),
        ];
        words.extend(
            self.group
                .map(|(kind, number)| format!("{}={number}", kind.word())),
        );
        words
    }

    /// Reads the words behind `timecell probe supply`.
    ///
    /// # Errors
    /// Names the word that is missing or not understood.
    pub fn from_words(words: &[String]) -> Result<SupplyArgs, ArgsError> {
        let mut args = SupplyArgs {
            control: String::new(),
            slot: 0,
            gaps: String::new(),
            class: SpinClass::Fifo { priority: 0 },
            beside: 0,
            group: None,
            cpus: Vec::new(),
            stretches: Vec::new(),
            rest_ns: 0,
            grid_ns: 0,
        };
        for word in words {
            let (key, value) = word.split_once('=').unwrap_or((word, ""));
            let bad = || ArgsError(format!("cannot read `{word}`"));
            match key {
                "control" => args.control = value.to_owned(),
                "slot" => args.slot = value.parse().map_err(|_| bad())?,
                "gaps" => args.gaps = value.to_owned(),
                "fifo" => {
                    let priority = value.parse().map_err(|_| bad())?;
                    args.class = SpinClass::Fifo { priority };
                }
                "deadline" => {
                    let (budget, period) = value.split_once(',').ok_or_else(bad)?;
                    args.class = SpinClass::Deadline {
                        budget_ns: budget.parse().map_err(|_| bad())?,
                        period_ns: period.parse().map_err(|_| bad())?,
                    };
                }
                "beside" => args.beside = value.parse().map_err(|_| bad())?,
                "cpus" => args.cpus = host::cpus::parse_list(value).map_err(|_| bad())?,
                "stretches" => {
                    args.stretches = (value.split(','))
                        .map(|text| {
                            let (length, at) = text.split_once('@')?;
                            Some((length.parse().ok()?, at.parse().ok()?))
                        })
                        .collect::<Option<_>>()
                        .ok_or_else(bad)?;
                }
                "rest" => args.rest_ns = value.parse().map_err(|_| bad())?,
                "grid" => args.grid_ns = value.parse().map_err(|_| bad())?,
                _ => {
                    let kind = evl::Kind::ALL.into_iter().find(|kind| kind.word() == key);
                    args.group = Some((kind.ok_or_else(bad)?, value.parse().map_err(|_| bad())?));
                }
            }
        }
        let whole = args.class != SpinClass::Fifo { priority: 0 } && !args.cpus.is_empty();
        let within = (1..=MOST_STRETCHES).contains(&args.stretches.len())
            && args.stretches.iter().all(|(length, _)| *length > 0)
            && args.rest_ns >= 0
            && args.grid_ns > 0;
        let alone = args.beside == 0 || args.crowds_class().is_some();
        let is_fifo = matches!(args.class, SpinClass::Fifo { .. });
        let alone = alone && (args.group.is_none() || (is_fifo && args.beside == 0));
        if !whole || !within || !alone {
            return Err(ArgsError(format!(
                "supply needs `fifo=` or `deadline=`, `cpus=`, `grid=` and 1 to {MOST_STRETCHES} `stretches=`; `beside=` needs \
                 `fifo=` of 2 or more"
            )));
        }
        Ok(args)
    }

    /// The class of the threads beside it; `None`: there can be none.
    pub(super) fn crowds_class(&self) -> Option<Class> {
        match self.class {
            SpinClass::Fifo { priority } if priority > 1 => Some(Class::Fifo {
                priority: priority - 1,
            }),
            _ => None,
        }
    }
}
