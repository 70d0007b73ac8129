//! `timecell doctor`: checks the machine. Changing it and putting it back are in the files beside this one.

mod alone;
mod fix;
mod rows;
mod taken;
mod undo;

use std::fmt::Write as _;
use std::path::Path;

use host::doctor::{Check, State};
use host::enforcers::{self, Found};
use host::fix::Fix;
use host::fix::undo::{USUAL, noted};
use host::provenance::{EngineFound, Provenance};
use host::root::Root;
use model::InputError;

use crate::cli::Doctor;
use crate::exit::{CommandError, Ended};
use crate::out;
use taken::{fixes, held};

/// Checks the machine, changes it, or puts it back.
pub fn run(options: &Doctor) -> Result<Ended, CommandError> {
    if let Some(file) = &options.undo {
        return undo::run(file.as_deref(), options.json);
    }
    let cpus = cpus(options)?;
    if options.fix || options.persist.is_some() {
        return fix::run(options, &cpus);
    }
    look(options, &cpus)
}

/// Prints the checks. Advice is not failure: the exit code is 0 for any finding, unless `--strict` is given.
fn look(options: &Doctor, cpus: &[u32]) -> Result<Ended, CommandError> {
    let root = Root::live();
    let machine = Provenance::collect_for(&root, env!("CARGO_PKG_VERSION"), cpus);
    let engines = engine::found(&engine::Options::default());
    let enforcers = enforcers::found(&root);
    let prefer = enforcers::preference(&enforcers);
    if options.json {
        let json = serde_json::json!({
            "schema": 1,
            "machine": machine.one_line(),
            "cpus": cpus,
            "checks": machine.checks,
            "enforcers": enforcers,
            "prefer": prefer,
            "engines": engines,
        });
        out::print(&format!("{json:#}"));
        return Ok(ended(&machine.checks, options.strict));
    }
    let mut text = format!("host    {}\n\n", machine.one_line());
    for check in &machine.checks {
        text.push_str(&lines(check, out::width(), out::colour()));
    }
    text.push_str("\nenforcers\n");
    for enforcer in &enforcers {
        let line = enforcer_line(enforcer);
        let _ = writeln!(text, "{}", wrapped(&line, out::width(), ""));
    }
    let _ = writeln!(text, "{}", wrapped(&prefer, out::width(), "        "));
    text.push_str("\nengines\n");
    for engine in &engines {
        text.push_str(&engine_line(engine));
    }
    let _ = writeln!(text, "\n{}", verdict(&machine.checks));
    let fixes = fixes(&root, cpus);
    let stayed = noted(&root, Path::new(USUAL)).stayed;
    if let Some(hint) = hint(&fixes, &stayed) {
        let _ = writeln!(text, "{}", textwrap::fill(&hint, out::width()));
    }
    out::print(&text);
    Ok(ended(&machine.checks, options.strict))
}

/// The changes that `--fix` would make, except to files that the kernel has refused to change before.
fn hint(fixes: &[Fix], stayed: &[String]) -> Option<String> {
    let can = |fix: &&Fix| fix.open().any(|write| !stayed.contains(&write.path));
    let can: Vec<&str> = (fixes.iter().filter(can)).map(|fix| &*fix.id).collect();
    (!can.is_empty()).then(|| {
        format!(
            "`timecell doctor --fix` changes until the next boot: {}",
            can.join(", ")
        )
    })
}

/// How the command ends: bad checks count only if `strict`.
fn ended(checks: &[Check], strict: bool) -> Ended {
    if strict && checks.iter().any(|check| check.state == State::Bad) {
        Ended::Unmet
    } else {
        Ended::Fine
    }
}

fn verdict(checks: &[Check]) -> String {
    let count = |state: State| checks.iter().filter(|check| check.state == state).count();
    format!(
        "{} checks: {} good, {} informational, {} warnings, {} bad, {} unknown",
        checks.len(),
        count(State::Good),
        count(State::Info),
        count(State::Warning),
        count(State::Bad),
        count(State::Unknown)
    )
}

fn lines(check: &Check, width: usize, colour: bool) -> String {
    let (from, to) = match (colour, check.state) {
        (true, State::Bad) => ("\x1b[31m", "\x1b[0m"),
        (true, State::Warning) => ("\x1b[33m", "\x1b[0m"),
        _ => ("", ""),
    };
    let mut text = String::new();
    let title = format!(
        "{:<8}{}: {}",
        check.state.to_string(),
        check.title,
        check.found
    );
    let head = wrapped(&title, width, "");
    let _ = writeln!(text, "{from}{head}{to}");
    if matches!(check.state, State::Warning | State::Bad) {
        let _ = writeln!(text, "{}", wrapped(&check.why, width, "        "));
        if let Some(fix) = &check.fix {
            let _ = writeln!(
                text,
                "{}",
                wrapped(&format!("fix: {fix}"), width, "        ")
            );
        }
    }
    text
}

fn wrapped(text: &str, width: usize, indent: &str) -> String {
    let options = textwrap::Options::new(width)
        .initial_indent(indent)
        .subsequent_indent("        ")
        .break_words(false);
    textwrap::fill(text, options)
}

/// The cpus to check.
fn cpus(options: &Doctor) -> Result<Vec<u32>, InputError> {
    let root = Root::live();
    let online = host::cpus::online_at(&root).unwrap_or_default();
    if let Some(list) = &options.cpus {
        let fault = |what: String| InputError::new("--cpus", what, "");
        let cpus = host::cpus::parse_list(list).map_err(|error| fault(error.to_string()))?;
        return match cpus.iter().find(|cpu| !online.contains(cpu)) {
            None if cpus.is_empty() => Err(fault("no cpu is named".to_owned())),
            None => Ok(cpus),
            Some(cpu) => Err(fault(format!(
                "cpu {cpu} is not online; online are {}",
                host::cpus::format_list(&online)
            ))),
        };
    }
    let mut cpus = host::doctor::rt_cpus(&root);
    cpus.extend(held(&online));
    cpus.retain(|cpu| online.contains(cpu) || online.is_empty());
    cpus.sort_unstable();
    cpus.dedup();
    Ok(cpus)
}

/// An enforcer is good if missions can use it; `cpuset-only`, which enforces nothing, is informational.
fn enforcer_line(found: &Found) -> String {
    let state = match found.holds_missions && found.enforcer.has_budgets() {
        true => State::Good,
        false => State::Info,
    };
    let missing = if found.has { "" } else { "not available: " };
    let (state, name) = (state.to_string(), found.enforcer.name());
    format!("{state:<8}{name}: {missing}{}", found.found)
}

fn engine_line(engine: &EngineFound) -> String {
    match (&engine.problem, &engine.version) {
        (None, Some(version)) => format!("good    {}: {version}\n", engine.name),
        (None, None) => format!("good    {}\n", engine.name),
        (Some(problem), version) => {
            let version = version
                .as_deref()
                .map(|v| format!("{v}; "))
                .unwrap_or_default();
            format!("info    {}: {version}{problem}\n", engine.name)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use host::fix::{Form, Write};

    #[test]
    fn what_the_kernel_refused_is_not_promised_again() {
        let fix = |id: &'static str, paths: &[&str]| Fix {
            id: id.into(),
            writes: (paths.iter())
                .map(|path| Write {
                    path: (*path).to_owned(),
                    form: Form::Plain,
                    was: "1".to_owned(),
                    set: "0".to_owned(),
                })
                .collect(),
            one_by_one: true,
            parameters: Vec::new(),
            left: Vec::new(),
        };
        let fixes = [fix("one", &["/a", "/b"]), fix("two", &["/c"])];
        let of = |stayed: &[&str]| {
            let stayed: Vec<String> = stayed.iter().map(|path| (*path).to_owned()).collect();
            hint(&fixes, &stayed)
        };
        assert!(of(&[]).unwrap().ends_with(": one, two"));
        assert!(of(&["/a"]).unwrap().ends_with(": one, two"));
        assert!(of(&["/a", "/b"]).unwrap().ends_with(": two"));
        assert_eq!(of(&["/a", "/b", "/c"]), None);
    }
}
