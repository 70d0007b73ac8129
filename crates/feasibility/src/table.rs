//! The study of a task set as a table.

use super::admission::admission_text;
use super::study::{CellStudy, Outcome, Study, TaskStudy};
use text::grid::{Column, Text, render};
use text::style::{Style, Tone};
use text::units::exact;
use text::words::{clean, plural};

/// The table over all tasks, then a sentence for each cell and one for the whole. Ends with a line break.
pub fn feasibility_table(study: &Study, style: Style) -> String {
    let rows: Vec<(&CellStudy, &TaskStudy)> = study
        .cells
        .iter()
        .flat_map(|cell| cell.tasks.iter().map(move |task| (cell, task)))
        .collect();
    let mut shown = "";
    let cells = rows.iter().map(|(cell, _)| {
        let again = std::mem::replace(&mut shown, &cell.name) == cell.name;
        if again {
            String::new()
        } else {
            clean(&cell.name)
        }
    });
    let cells = cells.collect();
    let times = |heading: &str, of: &dyn Fn(&TaskStudy) -> Option<u64>| {
        let text = |ns: Option<u64>| ns.map_or("-".to_owned(), exact);
        Column::plain(
            heading,
            rows.iter().map(|(_, task)| text(of(task))).collect(),
        )
        .right()
    };
    let mut columns = vec![
        Column::plain("cell", cells),
        Column::plain(
            "task",
            rows.iter().map(|(_, task)| clean(&task.name)).collect(),
        ),
        times("wcet", &|task| Some(task.wcet_ns)),
        times("period", &|task| Some(task.period_ns)),
        times("deadline", &|task| Some(task.deadline_ns)),
    ];
    if rows.iter().any(|(_, task)| task.jitter_ns > 0) {
        columns.push(times("jitter", &|task| Some(task.jitter_ns)));
    }
    if rows.iter().any(|(_, task)| task.blocking_ns > 0) {
        columns.push(times("blocking", &|task| Some(task.blocking_ns)));
    }
    columns.push(times("response at most", &|task| task.response_ns));
    columns.push(times("slack", &|task| task.slack_ns));
    let verdicts = rows.iter().map(|(_, task)| verdict(task.outcome)).collect();
    columns.push(Column::new("verdict", verdicts));
    let mut out = render(&columns, style);
    out.push('\n');
    for cell in &study.cells {
        let special = cell.special.as_ref();
        let mut more = special.map_or_else(Vec::new, |special| special.lines(cell));
        if let Some(server) = &cell.server {
            more.push(super::servers::sentence(cell, server));
        }
        for line in std::iter::once(sentence(cell)).chain(more) {
            out += &style.wrap(&clean(&line), 8);
            out.push('\n');
        }
    }
    if let Some(together) = &study.together {
        let line = format!("cpus    {}: {}", together.outcome.word(), together.what);
        out += &style.wrap(&clean(&line), 8);
        out.push('\n');
    }
    if let Some(linux) = &study.linux {
        out += &admission_text(linux, style);
    }
    out += &format!(
        "verdict {}\n",
        style.paint(tone(study.outcome()), &whole(study))
    );
    out
}

fn tone(outcome: Outcome) -> Tone {
    match outcome {
        Outcome::Holds => Tone::Plain,
        Outcome::Fails => Tone::Bad,
        Outcome::Undecided => Tone::Caution,
    }
}

fn verdict(outcome: Outcome) -> Text {
    Text(outcome.word().to_owned(), tone(outcome))
}

/// `cell    control (fp dm in 5 ms every 10 ms): holds; response-time analysis ..., exact ...`.
fn sentence(cell: &CellStudy) -> String {
    let why = match &cell.verdict {
        analysis::Verdict::Undecided(why) => format!("{why}; "),
        _ => String::new(),
    };
    let word = match cell.outcome {
        Outcome::Undecided => String::new(),
        outcome => format!("{}; ", outcome.word()),
    };
    format!(
        "cell    {} ({} {}): {word}{why}{}",
        cell.name,
        cell.policy,
        super::explain::supply_words(cell),
        cell.proof
    )
}

fn whole(study: &Study) -> String {
    let late = study
        .cells
        .iter()
        .filter(|cell| cell.outcome == Outcome::Fails)
        .count();
    let tested = study.deadlines().worst(study.supplied());
    if tested == Outcome::Holds && !study.uncovered.is_empty() {
        return format!(
            "undecided: every deadline that was tested holds, but {}",
            study.uncovered.join("; ")
        );
    }
    match study.outcome() {
        Outcome::Holds if study.assumes_supply() => {
            "every deadline holds if every reservation is supplied".to_owned()
        }
        Outcome::Holds => "every deadline holds".to_owned(),
        Outcome::Undecided => "undecided".to_owned(),
        Outcome::Fails if late > 0 => {
            format!(
                "a deadline can be missed in {}",
                plural(late as u64, "cell")
            )
        }
        Outcome::Fails => match &study.together {
            Some(together) if together.outcome == Outcome::Fails => {
                "the cells do not fit together".to_owned()
            }
            _ => "a server may not get its budget".to_owned(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study;
    use model::taskset::TaskSet;

    fn table(text: &str) -> String {
        let set = TaskSet::parse("x", text).expect("a task set");
        feasibility_table(&study(&set, false), Style::default())
    }

    #[test]
    fn bounds_slack_and_verdicts_are_shown() {
        let text = "schema = 1\ncpus = 1\n[[cell]]\nname = \"c\"\n\
            reservation = { budget = \"7.5ms\", period = \"11ms\" }\n\
            [[cell.task]]\nname = \"a\"\nwcet = \"1ms\"\nperiod = \"20ms\"\n\
            [[cell.task]]\nname = \"b\"\nwcet = \"2ms\"\nperiod = \"30ms\"\njitter = \"1ms\"\n";
        let shown = table(text);
        for part in [
            "response at most",
            "jitter",
            "8 ms",
            "holds; response-time analysis on the periodic resource model, exact",
            "7.5 ms every 11 ms",
            "cpus    holds",
            "linux   cpu 0: admitted; c requests",
            "verdict every deadline holds",
        ] {
            assert!(shown.contains(part), "`{part}` is not in\n{shown}");
        }
        let shown = table(&text.replace("\"2ms\"", "\"25ms\""));
        assert!(
            shown.contains("verdict a deadline can be missed in 1 cell"),
            "{shown}"
        );
        assert!(shown.contains("   fails"), "{shown}");
    }

    #[test]
    fn the_row_of_a_task_ends_with_its_word() {
        for (policy, wcet) in [("fp", "3ms"), ("fp", "8ms"), ("edf", "8ms")] {
            let text = format!(
                "schema = 1\n[[cell]]\nname = \"control\"\npolicy = \"{policy}\"\n\
                 reservation = {{ budget = \"2ms\", period = \"5ms\" }}\n\
                 [[cell.task]]\nname = \"loop\"\nwcet = \"1ms\"\nperiod = \"20ms\"\n\
                 [[cell.task]]\nname = \"log\"\nwcet = \"{wcet}\"\nperiod = \"24ms\"\n"
            );
            let study = study(&TaskSet::parse("x", &text).expect("a task set"), false);
            let shown = feasibility_table(&study, Style::default());
            for task in &study.cells[0].tasks {
                let start = format!(" {} ", task.name);
                let row = shown.lines().find(|line| line.contains(&start));
                let row = row.expect("a row");
                assert!(row.ends_with(task.outcome.word()), "{task:?}: {shown}");
            }
        }
    }

    #[test]
    fn cells_that_do_not_fit_are_no_yes() {
        let cell = |name: &str| {
            format!(
                "[[cell]]\nname = \"{name}\"\n[[cell.task]]\nname = \"t\"\nwcet = \"1ms\"\nperiod = \"20ms\"\n"
            )
        };
        let shown = table(&format!("schema = 1\ncpus = 1\n{}{}", cell("a"), cell("b")));
        assert!(
            shown.contains("cpus    fails: the cells reserve more"),
            "{shown}"
        );
        assert!(
            shown.contains("verdict the cells do not fit together"),
            "{shown}"
        );
    }
}
