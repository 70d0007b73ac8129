//! Tests that help, docs and the template name every engine, load, format and enforcer, in the order of their lists.

use std::collections::{BTreeMap, BTreeSet};

use clap::{Arg, Command, CommandFactory};
use model::mission::ImageKind;
use model::{Enforcer, EngineKind, IDLE, LoadKind};
use record::import::{Described, Format, measured, taskset};

use super::Cli;

/// The text of a file, by its path from the workspace.
fn text(path: &str) -> String {
    let path = format!("{}/../../{path}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// A page of the docs.
fn page(name: &str) -> String {
    text(&format!("docs/src/{name}.md"))
}

/// The rest of the first line that begins with this.
fn line<'a>(text: &'a str, beginning: &str) -> &'a str {
    let mut all = text.lines().filter_map(|line| line.strip_prefix(beginning));
    all.next()
        .unwrap_or_else(|| panic!("no line `{beginning}`"))
}

/// The words in backquotes in the first column of the rest of a row.
fn values(row: &str) -> Vec<&str> {
    quoted(row.split(" |").next().unwrap_or_default())
}

/// The words in backquotes.
fn quoted(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

/// The cells of the rows of the table below this header.
fn table<'a>(text: &'a str, header: &str) -> Vec<Vec<&'a str>> {
    let mut lines = text.lines().skip_while(|line| !line.starts_with(header));
    let rows: Vec<&str> = (lines.by_ref().skip(2))
        .take_while(|line| line.starts_with('|'))
        .collect();
    assert!(!rows.is_empty(), "no table `{header}`");
    let cells = |row: &'a str| row.trim_matches('|').split('|').map(str::trim).collect();
    rows.into_iter().map(cells).collect()
}

/// The values that an option of a command or subcommand offers in its help, each with its description.
fn offered(command: &str, option: &str) -> Vec<(String, String)> {
    let all = Cli::command();
    let command = (command.split(' ')).fold(&all, |command, word| {
        command.find_subcommand(word).expect(word)
    });
    let mut options = command.get_arguments();
    let option = options.find(|arg| arg.get_id() == option).expect(option);
    assert!(!option.is_hide_possible_values_set(), "{option}");
    (option.get_possible_values().iter())
        .filter(|value| !value.is_hide_set())
        .map(|value| {
            let help = value.get_help().map(ToString::to_string);
            (value.get_name().to_owned(), help.unwrap_or_default())
        })
        .collect()
}

fn with_help<'a>(all: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<(String, String)> {
    all.map(|(name, help)| {
        assert!(!help.is_empty(), "{name}");
        (name.to_owned(), help.to_owned())
    })
    .collect()
}

#[test]
fn engines_are_in_help_docs_and_template() {
    let names = EngineKind::ALL.map(EngineKind::name);
    let measured: Vec<&str> = (EngineKind::OF_BENCH.iter().map(|kind| kind.name())).collect();
    let known = EngineKind::OF_BENCH.iter();
    let known = with_help(known.map(|kind| (kind.name(), kind.summary())));
    for command in ["bench", "bench overhead", "bench startup"] {
        assert_eq!(offered(command, "engine"), known, "{command}");
    }
    let engines = page("engines");
    let rows = table(&engines, "| engine | what it is |");
    let rows: Vec<&str> = rows.iter().flat_map(|row| quoted(row[0])).collect();
    assert_eq!(rows, names);
    let words = page("introduction");
    assert_eq!(
        values(line(&words, "| engine | what makes a cell: ")),
        names
    );
    let template = text("crates/timecell/src/commands/template.toml");
    let comment = "# A trial is a set of cells that run together. Engines: ";
    assert_eq!(
        line(&template, comment),
        format!("{}.", measured.join(", "))
    );
}

#[test]
fn the_docs_say_which_engines_make_cells_of_which_image() {
    let engines = page("engines");
    let header = "| image | ";
    let columns: Vec<Vec<&str>> = (line(&engines, header).trim_matches('|').split('|'))
        .map(quoted)
        .collect();
    let kinds = [
        ImageKind::Rootfs,
        ImageKind::Bundle,
        ImageKind::Binary,
        ImageKind::Reference,
        ImageKind::Inmate,
    ];
    let rows = table(&engines, header);
    assert_eq!(rows.len(), ImageKind::ALL.len());
    for engine in EngineKind::ALL {
        let column = (columns.iter()).position(|names| names.contains(&engine.name()));
        for (kind, row) in kinds.into_iter().zip(&rows) {
            let makes = column.is_some_and(|column| row[column + 1] != "no");
            assert_eq!(makes, engine.makes(kind), "{engine}: {}", row[0]);
        }
    }
    let missions = page("mission-file");
    for (key, kind) in [
        ("rootfs", ImageKind::Rootfs),
        ("bundle", ImageKind::Bundle),
        ("reference", ImageKind::Reference),
    ] {
        let row = line(&missions, &format!("| `{key}` | text | "));
        let (_, said) = row.rsplit_once("; engine").expect("engines");
        let engines = EngineKind::of_missions_from(kind).into_iter();
        assert_eq!(
            quoted(said),
            engines.map(EngineKind::name).collect::<Vec<_>>()
        );
    }
}

#[test]
fn loads_are_in_docs_and_template() {
    let names = LoadKind::ALL.map(LoadKind::name);
    let formats = page("run-formats");
    assert_eq!(
        values(line(&formats, "| `kind` | text | `cpu`")),
        names[1..]
    );
    let loads = page("loads");
    for name in names.iter().chain(&[IDLE]) {
        line(&loads, &format!("**{name}** "));
    }
    let template = text("crates/timecell/src/commands/template.toml");
    let (first, others) = line(&template, "load = \"")
        .split_once("\" ")
        .expect("a load");
    let (_, others) = others.split_once("# or ").expect("the others");
    let (others, _) = others.split_once(':').expect("the others");
    let said: Vec<&str> = [first].into_iter().chain(others.split(", ")).collect();
    // A custom load has no name of its own.
    assert_eq!(said, names.map(|name| name).split_last().expect("loads").1);
}

#[test]
fn formats_are_in_help_and_docs() {
    fn known<E: Described>() -> Vec<(String, String)> {
        with_help(Format::<E>::all().map(|format| (format.name(), format.files())))
    }
    fn known_of<E: Described>(_: fn(&str) -> Option<Format<E>>) -> Vec<(String, String)> {
        known::<E>()
    }
    assert_eq!(
        offered("report", "format"),
        known_of(measured::Format::named)
    );
    assert_eq!(
        offered("analyze", "format"),
        known_of(taskset::Format::named)
    );

    let formats = page("formats");
    let rows = table(&formats, "| `--format` | file |");
    let rows: BTreeSet<&str> = rows.iter().flat_map(|row| quoted(row[0])).collect();
    assert_eq!(rows, measured::Format::names().into_iter().collect());

    let names = taskset::Format::names();
    let cli = page("cli");
    let row = line(&cli, "| `--format FORMAT` | by the name | ");
    assert_eq!(quoted(row.split(';').next().unwrap_or_default()), names);
    let sets = page("task-sets");
    let rows = table(&sets, "| format | `--format` |");
    let rows: Vec<&str> = rows.iter().flat_map(|row| quoted(row[1])).collect();
    // The first is timecell's own format, which the rest of the page describes.
    assert_eq!(rows, names[1..]);
}

#[test]
fn enforcers_are_in_help_and_docs() {
    let known = Enforcer::OF_SUPPLY.iter();
    let known = with_help(known.map(|each| (each.name(), each.summary())));
    assert_eq!(offered("bench supply", "enforcer"), known);
    assert_eq!(offered("bench isolation", "enforcer"), known);
    let cli = page("cli");
    let row = line(
        &cli,
        "| `--enforcer ENFORCER,...` | all but `evl-quota` and `evl-tp` | scenarios `supply` and `isolation`: ",
    );
    let names: Vec<&str> = Enforcer::OF_SUPPLY.iter().map(|each| each.name()).collect();
    assert_eq!(quoted(row), names);
}

#[test]
fn each_command_says_what_it_does_and_no_two_the_same() {
    let all = super::command();
    let verbs = all.get_subcommands();
    let all = verbs.flat_map(|verb| [verb].into_iter().chain(verb.get_subcommands()));
    let mut seen = BTreeSet::new();
    for command in all {
        let about = command.get_about().map(ToString::to_string);
        let about = about.unwrap_or_default();
        assert!(!about.is_empty(), "{}", command.get_name());
        assert!(
            seen.insert(about.clone()),
            "{}: {about}",
            command.get_name()
        );
    }
}

#[test]
fn scenarios_are_commands_of_bench_and_in_the_docs() {
    let all = super::command();
    let bench = all.find_subcommand("bench").expect("bench");
    let commands: Vec<&str> = bench.get_subcommands().map(Command::get_name).collect();
    assert_eq!(commands, bench::scenario::names());
    for command in bench.get_subcommands() {
        let about = command.get_about().map(ToString::to_string);
        assert!(about.is_some_and(|about| about.ends_with('?')));
    }
    let cli = page("cli");
    let said = cli.split("SCENARIO is one of ").nth(1);
    let said = said.and_then(|said| said.split(':').next());
    assert_eq!(said.map(quoted), Some(commands));
    // Every option of every scenario has its row.
    for command in [bench].into_iter().chain(bench.get_subcommands()) {
        // Those for other machines are on a page of their own.
        let own = command.get_arguments();
        let own = own.filter(|arg| arg.get_help_heading() != Some("On another machine"));
        for option in own.filter_map(Arg::get_long) {
            let (name, row) = (command.get_name(), format!("`--{option}"));
            let has_row = |line: &str| line.starts_with('|') && line.contains(&row);
            assert!(cli.lines().any(has_row), "{name} --{option}");
        }
    }
}

#[test]
fn the_examples_are_read() {
    for experiment in ["examples/experiment.toml", "examples/machines.toml"] {
        let read = model::Experiment::parse(experiment, &text(experiment));
        assert!(read.is_ok(), "{read:?}");
    }
    let set = "examples/taskset.toml";
    let read = model::taskset::TaskSet::parse(set, &text(set));
    assert!(read.is_ok(), "{read:?}");
}

/// The options of a command and of all below it: each by its long name, and by its short one where it has one.
fn options(command: &Command, found: &mut BTreeMap<String, Option<String>>) {
    let shown = command.get_arguments().filter(|arg| !arg.is_hide_set());
    found.extend(shown.filter_map(|arg| {
        let short = arg.get_short().map(|short| format!("-{short}"));
        Some((format!("--{}", arg.get_long()?), short))
    }));
    (command.get_subcommands()).for_each(|below| options(below, found));
}

/// The options that a page names.
fn named(page: &str) -> BTreeSet<&str> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '-';
    (page.split(|c| !is_part(c)))
        .filter(|word| word.starts_with('-') && word.contains(char::is_alphabetic))
        .collect()
}

#[test]
fn pages_of_commands_name_every_option_and_no_other() {
    let mut known = BTreeMap::new();
    options(&super::command(), &mut known);
    let pages = ["cli", "run", "control", "hold", "boards", "remote"]
        .map(page)
        .join("\n");
    let all = named(&pages);
    let is_named = |name: &str, short: Option<&str>| {
        all.contains(name) || short.is_some_and(|short| all.contains(short))
    };
    for (name, short) in &known {
        assert!(is_named(name, short.as_deref()), "{name} is on no page");
    }
    let page = page("cli");
    for name in (named(&page).into_iter()).filter(|name| name.starts_with("--")) {
        let is_known = known.contains_key(name) || ["--help", "--version"].contains(&name);
        assert!(is_known, "{name} is no option");
    }
}
