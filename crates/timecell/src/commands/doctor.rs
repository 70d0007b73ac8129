//! `timecell doctor`.

use std::fmt::Write as _;

use host::doctor::{Check, State};
use host::provenance::EngineFound;

use crate::cli::Doctor;
use crate::exit::{CommandError, Ended};
use crate::out;

/// Prints the checks; the exit code is 0 whatever they found, since advice is not failure, unless `--strict` asks for it.
pub fn run(options: &Doctor) -> Result<Ended, CommandError> {
    let machine = host::provenance::Provenance::collect(env!("CARGO_PKG_VERSION"));
    let engines = engine::found(&engine::Options::default());
    if options.json {
        let json = serde_json::json!({
            "schema": 1,
            "machine": machine.one_line(),
            "checks": machine.checks,
            "engines": engines,
        });
        out::print(&format!("{json:#}"));
        return Ok(ended(&machine.checks, options.strict));
    }
    let mut text = format!("host    {}\n\n", machine.one_line());
    for check in &machine.checks {
        text.push_str(&lines(check, out::width(), out::colour()));
    }
    text.push_str("\nengines\n");
    for engine in &engines {
        text.push_str(&engine_line(engine));
    }
    let _ = writeln!(text, "\n{}", verdict(&machine.checks));
    out::print(&text);
    Ok(ended(&machine.checks, options.strict))
}

/// Whether what is bad counts.
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
        if let Some(mend) = &check.mend {
            let _ = writeln!(
                text,
                "{}",
                wrapped(&format!("fix: {mend}"), width, "        ")
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
