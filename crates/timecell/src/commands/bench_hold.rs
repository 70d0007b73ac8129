//! The cpus of a measurement in the machine's ledger: missions keep off them meanwhile, and it keeps off the missions'.

use std::collections::BTreeSet;

use bench::Plan;
use supervise::ledger::{Entry, Holder, Holding, Ledger, LedgerError};

use crate::cli::Bench;
use crate::exit::CommandError;
use crate::out;

/// Holds the cpus of this plan's cells while the answer lives. Loads hold none: they are ordinary work, on whose time nobody
/// relies.
///
/// # Errors
/// When a mission holds one of them and nobody said `--beside-missions`, or the ledger cannot be used.
pub fn of_plan(plan: &Plan, what: &str, options: &Bench) -> Result<Holding, CommandError> {
    let cells = plan.trials.iter().flat_map(|trial| &trial.cells);
    let cpus: BTreeSet<u32> = cells.map(|(_, cpu)| *cpu).collect();
    hold(what, cpus.into_iter().collect(), options)
}

/// As [`of_plan`], for a measurement on the cpus that `--cpus` names, else on all.
///
/// # Errors
/// As [`of_plan`].
pub fn of_options(what: &str, options: &Bench) -> Result<Holding, CommandError> {
    let named = options.cpus.as_deref();
    let named = named.and_then(|list| host::cpus::parse_list(list).ok());
    let cpus = named.unwrap_or_else(|| host::cpus::online().unwrap_or_default());
    hold(what, cpus, options)
}

fn hold(what: &str, cpus: Vec<u32>, options: &Bench) -> Result<Holding, CommandError> {
    let holder = Holder::Bench {
        name: what.to_owned(),
        pid: std::process::id().cast_signed(),
    };
    let locked = Ledger::default().lock()?;
    for other in locked.others(&holder)? {
        let shared: Vec<u32> = other.cpus();
        let shared: Vec<u32> = shared
            .into_iter()
            .filter(|cpu| cpus.contains(cpu))
            .collect();
        if shared.is_empty() || !matches!(other.holder, Holder::Mission { .. }) {
            continue;
        }
        let list = host::cpus::format_list(&shared);
        if !options.beside_missions {
            return Err(LedgerError::InTheWay {
                who: other.holder.to_string(),
                cpus: list,
            }
            .into());
        }
        out::note(&format!(
            "note    {} holds cpu {list}: its cells are in what is measured, and may be late by it",
            other.holder
        ));
    }
    let mut entry = Entry::own(holder).map_err(LedgerError::from)?;
    entry.measured_cpus = cpus;
    Ok(locked.take(entry)?)
}
