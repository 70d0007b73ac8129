//! Planning a load: which of its forms will run on this machine, or the unmet need.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use host::install::install;
use host::sched::Class;
use model::{LoadForm, LoadKind, LoadPlan, Requirement};

use super::guard;
use super::kind::Program;
use super::kinds::by_kind;

/// A load that will run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedLoad {
    /// The requested load.
    pub plan: LoadPlan,
    /// `built in`, or the program and its version.
    pub form: String,
    /// Cpus that it may use, ascending.
    pub cpus: Vec<u32>,
    pub(crate) built_in: bool,
    /// The virtual machine that it runs in.
    pub(crate) machine: Option<engine::Machine>,
}

impl PlannedLoad {
    pub(crate) fn uses_disk(&self) -> bool {
        by_kind(self.plan.kind).needs_disk(self.built_in)
    }

    /// Where it runs: `host`, or `cell (embedded)`, with the budget of one that is held.
    pub fn place(&self) -> String {
        let held = self
            .plan
            .reservation
            .map(|(budget, period)| format!(", held to {budget} every {period} by SCHED_DEADLINE"));
        let held = held.unwrap_or_default();
        let is_emulated = self.machine.as_ref().is_some_and(|machine| !machine.kvm);
        let emulated = if is_emulated { ", emulated" } else { "" };
        match self.plan.cell {
            None => "host".to_owned(),
            Some(engine) => format!("cell ({engine}{emulated}{held})"),
        }
    }

    /// The class that holds it to its budget.
    pub(crate) fn class(&self) -> Option<Class> {
        let ns = |time: model::Duration| time.ns().unsigned_abs();
        let (budget, period) = self.plan.reservation?;
        Some(Class::Deadline {
            runtime_ns: ns(budget),
            deadline_ns: ns(period),
            period_ns: ns(period),
        })
    }
}

/// One load's forms on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadOffer {
    /// Its name.
    pub name: &'static str,
    /// Its effect.
    pub does: &'static str,
    /// Whether there is a built-in form.
    pub built_in: bool,
    /// Program and Debian package of the program form.
    pub program: Option<(&'static str, &'static str)>,
    /// Version of that program, where it is installed.
    pub version: Option<String>,
}

/// Every load, with both of its forms.
pub fn offers() -> Vec<LoadOffer> {
    LoadKind::ALL
        .into_iter()
        .map(|kind| {
            let load = by_kind(kind);
            let program = load.program();
            LoadOffer {
                name: kind.name(),
                does: load.does(),
                built_in: kind != LoadKind::Custom,
                program: program.map(|program| (program.name, program.package)),
                version: program.and_then(version),
            }
        })
        .collect()
}

/// Chooses the form. `allowed` are the cpus that this process may use.
///
/// # Errors
/// The unmet need, with its fix.
pub(crate) fn resolve(plan: &LoadPlan, allowed: &[u32]) -> Result<PlannedLoad, Requirement> {
    let form = choose(plan)?;
    let built_in = form.is_none();
    let mut cpus = if plan.cpus.is_empty() {
        allowed.to_vec()
    } else {
        plan.cpus.clone()
    };
    cpus.sort_unstable();
    cpus.dedup();
    Ok(PlannedLoad {
        plan: plan.clone(),
        form: form.unwrap_or_else(|| "built in".to_owned()),
        cpus,
        built_in,
        machine: None,
    })
}

/// The program with its version, or `None` for the built-in form.
fn choose(plan: &LoadPlan) -> Result<Option<String>, Requirement> {
    let what = || format!("load {}", plan.name);
    let load = by_kind(plan.kind);
    let outside = load.needs_disk(true) || load.needs_network();
    if plan.cell.is_some() && outside {
        return Err(Requirement::unmet(
            what(),
            format!(
                "the load {} needs a disk or a network, which cells do not have",
                plan.kind
            ),
            "in = \"host\"",
        ));
    }
    if plan.kind == LoadKind::Custom {
        let program = &plan.command[0];
        return match find(program) {
            Some(path) => Ok(Some(path.display().to_string())),
            None => Err(Requirement::unmet(
                what(),
                format!("the program `{program}` was not found"),
                "install it, or give its full path",
            )),
        };
    }
    if plan.form == Some(LoadForm::BuiltIn) || plan.cell.is_some() {
        return Ok(None);
    }
    let program = load.program();
    match (plan.form, program, program.and_then(version)) {
        (_, _, Some(version)) => Ok(Some(version)),
        (Some(LoadForm::Program), Some(program), None) => Err(Requirement::unmet(
            what(),
            format!("`{}` is not installed", program.name),
            format!("{}, or form = \"built-in\"", install(program.package)),
        )),
        (Some(LoadForm::Program), None, None) => Err(Requirement::unmet(
            what(),
            format!("no program provides the load {}", plan.kind),
            "form = \"built-in\"",
        )),
        _ => Ok(None),
    }
}

/// Name and version of a program that is installed and can be started.
fn version(program: Program) -> Option<String> {
    let path = find(program.name)?;
    let output = Command::new(path)
        .args(program.version)
        .stdin(Stdio::null())
        .output()
        .ok()?;
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    // The first word of the first line that begins with a digit, as in `ping from iputils 20221126`.
    let number = text
        .lines()
        .next()?
        .split([' ', ','])
        .find(|word| word.starts_with(|c: char| c.is_ascii_digit()));
    Some(match number {
        Some(number) => format!("{} {number}", program.name),
        None => program.name.to_owned(),
    })
}

pub(super) fn find(program: &str) -> Option<PathBuf> {
    let runs = |path: &Path| {
        path.metadata()
            .is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    };
    if program.contains('/') {
        return Some(PathBuf::from(program)).filter(|path| runs(path));
    }
    guard::PATH
        .split(':')
        .map(|dir| Path::new(dir).join(program))
        .find(|path| runs(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_load_is_offered_once() {
        let offers = offers();
        assert_eq!(offers.len(), LoadKind::ALL.len());
        assert!(offers.iter().all(|offer| !offer.does.is_empty()));
    }

    #[test]
    fn a_program_that_is_not_there_is_a_requirement_with_its_fix() {
        let mut plan = LoadPlan::new(LoadKind::Custom);
        plan.command = vec!["/nonexistent/program".to_owned()];
        let unmet = resolve(&plan, &[0]).unwrap_err();
        assert!(
            !unmet.met && unmet.reason.contains("was not found"),
            "{unmet:?}"
        );
        plan.command = vec!["sh".to_owned()];
        let planned = resolve(&plan, &[2, 0]).unwrap();
        assert_eq!(planned.cpus, [0, 2]);
        assert!(planned.form.ends_with("/sh"), "{}", planned.form);
    }

    #[test]
    fn in_a_cell_the_built_in_form_runs() {
        let mut plan = LoadPlan::new(LoadKind::Cpu);
        plan.cell = Some(model::EngineKind::Embedded);
        let planned = resolve(&plan, &[0]).unwrap();
        assert_eq!(
            (planned.form.as_str(), planned.built_in),
            ("built in", true)
        );
        assert_eq!(planned.place(), "cell (embedded)");
        assert_eq!(planned.class(), None);
        let ms = |ms: i64| model::Duration::from_ns(ms * 1_000_000);
        plan.reservation = Some((ms(1), ms(10)));
        let planned = resolve(&plan, &[0]).unwrap();
        let place = "cell (embedded, held to 1ms every 10ms by SCHED_DEADLINE)";
        assert_eq!(planned.place(), place);
        let class = planned.class().map(|class| class.to_string());
        assert_eq!(class.as_deref(), Some("DEADLINE 1 ms/10 ms/10 ms"));
    }
}
