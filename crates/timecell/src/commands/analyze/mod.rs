//! `timecell analyze` and its subcommands, one file each, and their common parts. The computing is done in `feasibility`.

mod ask;
mod check;
mod design;
mod generate;
mod schedulability;

use std::path::Path;

use analysis::generate::{Periods, Recipe, Utilizations};
use analysis::linux::Reaction;
use feasibility::Outcome;
use model::taskset::{Policy, TaskSet};
use model::{Enforcer, InputError};
use record::import::taskset::{FIXED, Options, import_from};
use record::supply::MeasuredSupply;

use super::measured::is_input;
use crate::cli::{Kernel, Making, PolicyName, Source};
use crate::exit::{CommandError, Ended};
use crate::out;
pub use ask::run;

/// How exact the freezer is assumed to be: as given by `--reaction`, or as the `--supply` run measured.
fn reaction(kernel: &Kernel) -> Result<Reaction, CommandError> {
    let Some(run) = &kernel.supply else {
        return Ok(kernel.reaction.0);
    };
    let measured = record::supply::load(run)?;
    study::supply_reaction(&measured).ok_or_else(|| {
        let what = format!("{} measured no budget under the freezer", run.display());
        let fix = "name a run of `timecell bench supply --enforcer freezer`";
        InputError::new("--supply", what, fix).into()
    })
}

/// The same for a design, whose budgets have not been measured: only the freezer's reaction counts.
fn reaction_of_design(kernel: &Kernel, enforcer: Enforcer) -> Result<Reaction, CommandError> {
    if kernel.supply.is_some() && enforcer != Enforcer::Freezer {
        let what = format!(
            "`analyze design` uses only the freezer's reaction of a run, and the enforcer is {}",
            enforcer.name()
        );
        let fix = "leave it out, or add --enforcer freezer; `timecell analyze FILE --supply RUN` uses measured reservations";
        return Err(InputError::new("--supply", what, fix).into());
    }
    reaction(kernel)
}

/// The reaction and the supply known of this enforcer: as given by `--reaction`, or as the `--supply` run measured.
fn known(
    kernel: &Kernel,
    enforcer: Enforcer,
) -> Result<(Reaction, Vec<MeasuredSupply>), CommandError> {
    let Some(run) = (kernel.supply.as_ref()).filter(|_| enforcer != Enforcer::Freezer) else {
        return Ok((reaction(kernel)?, Vec::new()));
    };
    let measured = record::supply::load(run)?;
    if measured.iter().all(|one| one.held.enforcer != enforcer) {
        let name = enforcer.name();
        let what = format!("{} measured no budget under {name}", run.display());
        let fix = format!("name a run of `timecell bench supply --enforcer {name}`");
        return Err(InputError::new("--supply", what, fix).into());
    }
    Ok((kernel.reaction.0, measured))
}

/// A task set, the name of its file, and the assumptions about it.
struct Loaded {
    name: String,
    set: TaskSet,
    notes: Vec<String>,
    /// Cells whose threads have no real-time class.
    unguaranteed: Vec<String>,
    /// The parts of the file that the set does not contain.
    uncovered: Vec<String>,
    /// Cells on several cpus that are tested on one of them.
    on_one_cpu: Vec<String>,
}

/// Reads the task set, in any format, and prints the assumptions; `cpus` replaces the number of this machine's cpus.
fn load(source: &Source, cpus: Option<u32>) -> Result<Loaded, CommandError> {
    let path = source.file.as_deref().unwrap_or(Path::new(""));
    let format = source.format;
    let options = Options {
        unit: source.unit.map(Into::into),
        policy: source.policy.map(policy),
        cpus: cpus.or_else(|| u32::try_from(host::cpus::online().ok()?.len()).ok()),
    };
    let (name, imported) = if is_input(path) {
        let input = std::io::stdin().lock();
        let name = "standard input";
        (name.to_owned(), import_from(format, name, input, options)?)
    } else {
        let name = path.display().to_string();
        let file = host::given_file::open(path).map_err(|what| InputError::new(&name, what, ""))?;
        let imported = import_from(format, &name, file, options)?;
        (name, imported)
    };
    for note in &imported.notes {
        out::note(&format!("note    {note}"));
    }
    Ok(Loaded {
        name,
        set: imported.set,
        notes: imported.notes,
        unguaranteed: imported.unguaranteed,
        uncovered: imported.uncovered,
        on_one_cpu: imported.on_one_cpu,
    })
}

/// The task set of a file, and its name in messages; the file's name tells the format.
pub fn task_set(path: &Path) -> Result<(String, TaskSet), CommandError> {
    let source = Source {
        file: Some(path.to_owned()),
        format: None,
        unit: None,
        policy: None,
    };
    let loaded = load(&source, None)?;
    Ok((loaded.name, loaded.set))
}

fn policy(name: PolicyName) -> Policy {
    match name {
        PolicyName::Fp => FIXED,
        PolicyName::Edf => Policy::Edf,
    }
}

/// How the command ends with this answer.
fn ended(outcome: Outcome) -> Ended {
    match outcome {
        Outcome::Holds => Ended::Fine,
        Outcome::Fails => Ended::VerdictFails,
        Outcome::Undecided => Ended::Failed,
    }
}

/// Periods are whole multiples of this, in ns, where the range allows it.
const PERIOD_GRID: u64 = 1_000;

/// The recipe of random sets with this utilization.
fn recipe(making: &Making, utilization: f64, nearest_deadline: f64) -> Result<Recipe, InputError> {
    if making.shortest > making.longest {
        return Err(InputError::new(
            "--shortest",
            format!(
                "{} is longer than --longest, {}",
                making.shortest, making.longest
            ),
            "the shortest period must be at most the longest",
        ));
    }
    Ok(Recipe {
        tasks: making.tasks as usize,
        utilization,
        utilizations: if utilization <= 1.0 {
            Utilizations::UUniFast
        } else {
            Utilizations::RandFixedSum {
                low: 0.0,
                high: 1.0,
            }
        },
        periods: Periods::LogUniform {
            shortest: making.shortest.ns().unsigned_abs(),
            longest: making.longest.ns().unsigned_abs(),
            grid: PERIOD_GRID,
        },
        deadlines: (nearest_deadline, 1.0),
        seed: making.seed,
    })
}

/// Writes a file completely or not at all.
fn write(path: &Path, text: &str) -> Result<(), CommandError> {
    Ok(record::run::write_atomically(path, text.as_bytes())?)
}

#[cfg(test)]
mod tests {
    use feasibility::{ReactionText, RtLimit};

    use super::*;

    #[test]
    fn a_design_takes_from_a_run_what_is_the_freezers_only() {
        let kernel = |supply: Option<&str>| Kernel {
            enforcer: None,
            rt_limit: RtLimit::KERNEL,
            reaction: ReactionText(Reaction::MEASURED),
            supply: supply.map(Into::into),
        };
        for enforcer in [Enforcer::RtCgroup, Enforcer::Deadline, Enforcer::Hcbs] {
            let of = |supply| reaction_of_design(&kernel(supply), enforcer);
            assert!(of(None).is_ok());
            let why = of(Some("no-run")).unwrap_err().to_string();
            let told = format!(
                "the freezer's reaction of a run, and the enforcer is {}",
                enforcer.name()
            );
            assert!(why.contains(&told), "{why}");
        }
        let by_freezer = reaction_of_design(&kernel(Some("no-run")), Enforcer::Freezer);
        let why = by_freezer.unwrap_err().to_string();
        assert!(!why.contains("analyze design"), "{why}");
    }
}
