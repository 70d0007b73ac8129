//! `timecell admit`: says whether a mission could be started here, and under which assumptions. Starts nothing.

use std::fmt::Write as _;
use std::path::Path;

use host::given_file;
use model::InputError;
use model::mission::{Cell, Latency, Mission, MissionFile, SupervisorClass};
use record::summary::RunSummary;
use record::supply::MeasuredSupply;
use report::{exact, rounded_up};
use supervise::admit::{
    Admission, Basis, Choice, Exactness, Facts, Fixes, Grant, Outcome, Refused, SupervisorGrant,
    TaskBound, admit, find_fixes,
};
use supervise::assume::{Assumption, Proof};
use supervise::ledger::{Entry, Holder, Ledger};
use supervise::machine::{Here, bundle_notes};

use crate::cli::{Admit, FileKind};
use crate::exit::{CommandError, Ended};
use crate::out;

/// Version of the JSON.
const SCHEMA: u32 = 1;

/// Prints the decision of admission; exit code 3 if a guarantee cannot be kept.
pub fn run(options: &Admit) -> Result<Ended, CommandError> {
    if options.schema {
        return super::generate::schema(FileKind::Mission);
    }
    let path = options.mission.as_deref().unwrap_or(Path::new(""));
    let here = Here::default();
    let (file, _) = read(path, &here)?;
    // If this mission already runs, its holdings are its own.
    let name = &file.mission().name;
    let (own, others): (Vec<Entry>, Vec<Entry>) = (Ledger::default().entries()?.into_iter())
        .partition(
            |entry| matches!(&entry.holder, Holder::Mission { name: other, .. } if other == name),
        );
    let facts =
        (here.facts().for_mission(name, &others, &[])).taking_over(file.mission(), own.first());
    let measured = measured(options.supply.as_deref(), &file)?;
    let latency_ns = latency(&file)?;
    let mut admission = admit(file.mission(), &facts, &measured, latency_ns);
    admission.notes.extend(bundle_notes(&file));
    let fixes = (!admission.is_admitted())
        .then(|| find_fixes(file.mission(), &facts, &measured, latency_ns));
    if let Some(fixes) = &fixes {
        admission.advise(fixes);
    }
    if options.json {
        let json = serde_json::json!({
            "schema": SCHEMA,
            "file": file.name(),
            "admitted": admission.is_admitted(),
            "latency_ns": latency_ns,
            "admission": admission,
            "assumptions": assumptions(&file, &admission).into_iter().map(|(task, all)| {
                serde_json::json!({ "task": task, "assumes": all })
            }).collect::<Vec<_>>(),
            "fixes": fixes,
        });
        out::print(&format!("{json:#}"));
    } else {
        out::print(&text(&file, &admission, &facts, fixes.as_ref()));
        let assumed = assumptions(&file, &admission);
        if !assumed.is_empty() {
            out::print(
                "\nThe bounds rest on what follows. It is looked at once a second while the mission runs, but for what is NOT CHECKED; \
                 a bound is withdrawn from the first deviation on (`timecell ps --verbose`).\n",
            );
            out::print(super::assumptions::text(&assumed).trim_end());
        }
    }
    Ok(if admission.is_admitted() {
        Ended::Fine
    } else {
        Ended::VerdictFails
    })
}

/// The assumptions of the bounds of the granted tasks, by `CELL.TASK`.
fn assumptions(file: &MissionFile, admission: &Admission) -> Vec<(String, Vec<Assumption>)> {
    let cells = file.mission().cells.iter();
    let proofs = cells.flat_map(|cell| {
        let named =
            move |proof: Proof| (format!("{}.{}", cell.name, proof.task), proof.assumptions());
        Proof::all(admission, cell).into_iter().map(named)
    });
    proofs.collect()
}

/// Reads a mission file and checks it against this machine; returns it with its text.
pub(super) fn read(path: &Path, here: &Here) -> Result<(MissionFile, String), CommandError> {
    let text = mission_text(path)?;
    let name = path.display().to_string();
    Ok((MissionFile::parse_on(&name, &text, here)?, text))
}

/// The text of a mission file.
pub(super) fn mission_text(path: &Path) -> Result<String, InputError> {
    given_file::text(path, model::mission::Limits::FILE_BYTES as u64)
        .map_err(|what| InputError::new(path.display().to_string(), what, ""))
}

/// The measured supplies: of the run named on the command line, else of the one that the mission names.
pub(super) fn measured(
    asked: Option<&Path>,
    file: &MissionFile,
) -> Result<Vec<MeasuredSupply>, CommandError> {
    let named = file.mission().supply_run.as_deref();
    match asked
        .map(Path::to_owned)
        .or_else(|| named.map(|run| file.resolve(run)))
    {
        Some(run) => Ok(record::supply::load(&run)?),
        None => Ok(Vec::new()),
    }
}

/// How late the kernel may wake a task, ns: the mission's allowance, or the maximum of its latency run.
pub(super) fn latency(file: &MissionFile) -> Result<u64, CommandError> {
    match &file.mission().latency {
        None => Ok(0),
        Some(Latency::Allowance(allowance)) => Ok(allowance.ns().unsigned_abs()),
        Some(Latency::Run(run)) => {
            let path = file.resolve(run);
            let summary: RunSummary = record::run::Run::open(&path)?.read()?;
            let worst = (summary.cells.iter())
                .flat_map(|cell| &cell.metrics)
                .filter(|metric| metric.metric == record::summary::Metric::WakeupLatency)
                .map(|metric| metric.summary.max_ns)
                .max();
            let worst = worst.ok_or_else(|| {
                InputError::new(
                    path.display().to_string(),
                    "the run measured no wake-up latency",
                    "name a run of `timecell bench latency`",
                )
            })?;
            Ok(u64::try_from(worst).unwrap_or(0))
        }
    }
}

/// The decision of admission as text.
pub(super) fn text(
    file: &MissionFile,
    admission: &Admission,
    facts: &Facts,
    fixes: Option<&Fixes>,
) -> String {
    let mission = file.mission();
    let mut text = String::new();
    let verdict = if admission.is_admitted() {
        "admitted"
    } else {
        "refused"
    };
    let beside = match admission.beside.as_slice() {
        [] => String::new(),
        others => format!(", beside {}", others.join(", ")),
    };
    let _ = writeln!(text, "mission {}: {verdict}{beside}\n", mission.name);
    for outcome in &admission.cells {
        match outcome {
            Outcome::Granted(grant) => granted(&mut text, grant, facts),
            Outcome::BestEffort { cell, cpus } => {
                let _ = writeln!(
                    text,
                    "{cell}\n    best effort on {}: nothing is guaranteed",
                    cpu_list(cpus)
                );
            }
            Outcome::Refused(refused) => refusal(&mut text, file, refused),
        }
    }
    supervisor(&mut text, &admission.supervisor, mission);
    if let Some(choice) = &admission.choice {
        chosen(&mut text, choice, admission.is_admitted());
    }
    text.push('\n');
    for cpu in &admission.cpus {
        let cells = if cpu.cells.is_empty() {
            "no cell".to_owned()
        } else {
            cpu.cells.join(", ")
        };
        let _ = writeln!(
            text,
            "cpu {}   {:.1} % reserved: {cells}",
            cpu.cpu,
            cpu.reserved * 100.0
        );
    }
    for frames in &admission.frames {
        let _ = writeln!(
            text,
            "frames of cpu {}: minor {}, major {}",
            frames.cpu,
            exact(frames.minor_ns),
            exact(frames.major_ns)
        );
        for window in &frames.windows {
            let whose = match (window.partition, window.cell.as_deref()) {
                (Some(number), Some(cell)) => format!("partition {number}, {cell}"),
                _ => "nobody's".to_owned(),
            };
            let (start, length) = (exact(window.start_ns), exact(window.length_ns));
            let _ = writeln!(text, "    from {start} for {length}: {whose}");
        }
    }
    for refusal in &admission.refusals {
        let _ = writeln!(text, "refused: {refusal}");
    }
    if let Some(fixes) = fixes {
        offered(&mut text, fixes);
    }
    for note in &admission.notes {
        let _ = writeln!(text, "note: {note}");
    }
    let style = report::Style {
        colour: false,
        width: out::width(),
    };
    text.lines()
        .map(|line| wrapped(line, style))
        .collect::<Vec<_>>()
        .join("\n")
}

/// A line wrapped to the terminal's width, with continuation lines indented further.
fn wrapped(line: &str, style: report::Style) -> String {
    let indent = line.len() - line.trim_start().len();
    let narrower = report::Style {
        width: style.width.saturating_sub(indent).max(20),
        ..style
    };
    let body = narrower.wrap(line.trim_start(), 4);
    let lines: Vec<String> = body
        .lines()
        .map(|line| format!("{}{line}", " ".repeat(indent)))
        .collect();
    lines.join("\n")
}

fn cpu_list(cpus: &[u32]) -> String {
    match cpus {
        [one] => format!("cpu {one}"),
        many => format!("cpus {}", host::cpus::format_list(many)),
    }
}

fn granted(text: &mut String, grant: &Grant, facts: &Facts) {
    let _ = writeln!(text, "{}", grant.cell);
    let held = match (grant.budget_ns, grant.period_ns) {
        (Some(budget), Some(period)) => format!(
            "{} every {} ({:.1} %), held by {}",
            exact(budget),
            exact(period),
            budget as f64 * 100.0 / period.max(1) as f64,
            grant.enforcer.name()
        ),
        _ if grant.band.is_none() => format!(
            "a runtime for each thread, held by {}",
            grant.enforcer.name()
        ),
        _ => "no budget is enforced".to_owned(),
    };
    let class = if grant.round_robin { "RR" } else { "FIFO" };
    let band = grant
        .band
        .map_or(String::new(), |band| format!(", {class} {band}"));
    let apart = match &grant.partition {
        Some(_) => ", a cpuset partition of this mission",
        None => "",
    };
    let _ = writeln!(text, "    {}{apart}, {held}{band}", cpu_list(&grant.cpus));
    let behind = match grant.postponed_ns {
        0 => String::new(),
        ns => format!(", {} of it behind cells of higher priority", rounded_up(ns)),
    };
    let supply = match grant.delay_ns {
        Some(delay) => format!(
            "assumes {:.1} % of the cpu after waiting up to {}{behind}",
            grant.rate * 100.0,
            rounded_up(delay)
        ),
        None => "assumes the cpu time that the others leave".to_owned(),
    };
    let basis = match &grant.basis {
        Basis::Measured { to_ns, reaction } => {
            let within = reaction.map_or(String::new(), |reaction| {
                format!(", and no better than {}", by_rule(reaction))
            });
            format!(
                "measured in all windows up to {}{within}",
                rounded_up(*to_ns)
            )
        }
        Basis::Tick { unmeasured } if grant.enforcer.is_out_of_band() => {
            format!("as EVL refills all quotas of a cpu at the same instant; {unmeasured}")
        }
        Basis::Windows { major_ns } => {
            format!("by its windows in each frame of {}", exact(*major_ns))
        }
        Basis::Tick { unmeasured } => format!(
            "by a model of the {} tick; {unmeasured}",
            exact(facts.tick_ns())
        ),
        Basis::Reaction {
            reaction,
            unmeasured,
        } => format!(
            "by {}; {}",
            by_rule(*reaction),
            (unmeasured.as_deref())
                .unwrap_or("the most that was measured on this machine, for other budgets")
        ),
        Basis::Ample {
            late_ns,
            unmeasured,
            assumed,
            spare_ns: _,
        } => {
            let late = late_ns.map_or(String::new(), |ns| {
                let of =
                    (unmeasured.as_deref()).unwrap_or("the most that was measured on this machine");
                format!(
                    ", and the freezer checks up to {} late, {of}",
                    rounded_up(ns)
                )
            });
            let only = match assumed {
                true => "admitted for its tasks only: ",
                false => "",
            };
            format!(
                "{only}because its budget is ample: its tasks alone cannot use it up, so that enforcement postpones nothing, as long as \
                 nothing else runs in the cell{late}"
            )
        }
        Basis::WholeCpu => "as long as every cell keeps to what it declares".to_owned(),
    };
    let _ = writeln!(text, "    {supply}, {basis}");
    for task in &grant.tasks {
        bound(text, grant, task);
    }
}

/// The rule by which the freezer's supply is certain.
fn by_rule(reaction: Exactness) -> String {
    format!(
        "the freezer's rule with checks up to {} late and overruns up to {}",
        rounded_up(reaction.late_ns),
        rounded_up(reaction.overrun_ns)
    )
}

/// The supervisor's own reservation, like a cell's, and how late it may react.
fn supervisor(text: &mut String, own: &SupervisorGrant, mission: &Mission) {
    let (Some((budget, period)), Some(priority)) = (own.reservation(), own.priority) else {
        let chosen = mission.supervisor.class == SupervisorClass::Other;
        if chosen && mission.cells.iter().any(Cell::is_real_time) {
            text.push_str(
                "supervisor\n    an ordinary process: nothing bounds how late it reacts\n",
            );
        }
        return;
    };
    let _ = writeln!(
        text,
        "supervisor\n    {}, {} every {} ({:.1} %), held by itself, FIFO {priority}",
        cpu_list(&own.cpus),
        exact(budget),
        exact(period),
        budget as f64 * 100.0 / period.max(1) as f64,
    );
    if let Some(response) = own.response_ns.filter(|response| *response > budget) {
        let _ = writeln!(
            text,
            "    reacts within {}: SCHED_DEADLINE threads, budgets of hcbs and other supervisors go before it",
            rounded_up(response)
        );
    }
    if own.is_kept_off() {
        let _ = writeln!(
            text,
            "    keeps off {}, for the sake of the cells",
            cpu_list(&own.spared)
        );
    }
}

/// The enforcer of cells whose file names none, and the cost that each other enforcer would have had.
fn chosen(text: &mut String, choice: &Choice, admitted: bool) {
    let how = match (choice.kept, admitted) {
        (true, _) => "chosen, it already holds running cells of this mission",
        (false, true) => "chosen, it admits all cells with the least cpu reserved",
        (false, false) => "assumed above, the first that the kernel has: none admits all cells",
    };
    let _ = writeln!(text, "enforcer (the file names none)");
    for offer in &choice.offers {
        let price = offer
            .reserved
            .map(|share| format!("{:.1} % of a cpu", share * 100.0));
        let line = match (&offer.why, price) {
            (None, Some(price)) => format!("{price}: {how}"),
            (None, None) => how.to_owned(),
            (Some(why), Some(price)) => format!("{price}: not chosen, {why}"),
            (Some(why), None) => format!("not chosen, {why}"),
        };
        let _ = writeln!(text, "    {}: {line}", offer.enforcer.name());
    }
}

fn bound(text: &mut String, grant: &Grant, task: &TaskBound) {
    let response = match task.response_ns {
        Some(response) => format!(
            "responds within {}, deadline {}",
            rounded_up(response),
            exact(task.deadline_ns)
        ),
        None => format!("deadline {}", exact(task.deadline_ns)),
    };
    let by = match (task.runtime_ns, task.priority) {
        (Some(runtime), _) => format!(", SCHED_DEADLINE with a runtime of {}", exact(runtime)),
        (None, Some(priority)) => format!(", {}", grant.class_at(priority)),
        (None, None) => String::new(),
    };
    let _ = writeln!(text, "    {}: {response}{by}", task.task);
}

fn refusal(text: &mut String, file: &MissionFile, refused: &Refused) {
    let line = file.line(&refused.place);
    let _ = writeln!(
        text,
        "{}\n    refused ({}:{line}): {}",
        refused.cell,
        file.name(),
        refused.why
    );
    if let Some(late) = &refused.witness {
        let _ = writeln!(text, "    {late}");
    }
    if let Some(fix) = &refused.fix {
        let _ = writeln!(text, "    fix: {fix}");
    }
}

/// Changes that would be admitted, or those tried in vain.
fn offered(text: &mut String, fixes: &Fixes) {
    let tried = || match fixes.missions {
        1 => "1 changed mission".to_owned(),
        many => format!("{many} changed missions"),
    };
    if fixes.found.is_empty() {
        let _ = writeln!(
            text,
            "no change to this file was found that would be admitted; tried {}, in {}{}",
            fixes.tried.join(", "),
            tried(),
            if fixes.cut_short {
                ", not all possible ones"
            } else {
                ""
            }
        );
        return;
    }
    let _ = writeln!(
        text,
        "any one of these changes would be admitted ({} tried):",
        tried()
    );
    for fix in &fixes.found {
        let edits: Vec<String> = fix.edits.iter().map(ToString::to_string).collect();
        let remark = fix
            .remark
            .map_or(String::new(), |remark| format!(" ({remark})"));
        let _ = writeln!(text, "    fix, {}: {}{remark}", fix.kind, edits.join("; "));
    }
}
