//! The front page: verbs in groups by their purpose, examples, and exit codes. Man pages take their sections from here.

use clap::{Command, CommandFactory as _};

use super::Cli;

/// Verbs by purpose, in the order of the front page. A new verb goes into exactly one group.
pub const GROUPS: [(&str, &[&str]); 5] = [
    ("Measure", &["bench", "report", "export", "board"]),
    ("Analyse", &["analyze", "admit"]),
    (
        "Run",
        &[
            "demo", "up", "run", "hold", "release", "update", "stop", "start", "restart", "down",
        ],
    ),
    ("Watch", &["top", "ps", "events", "logs"]),
    (
        "Set up",
        &["doctor", "clean", "completions", "man", "schema", "header"],
    ),
];

/// The exit codes that all verbs share.
pub const EXIT_CODES: &str = "Exit codes: 0 fine; 1 failed; 2 bad usage or input; 3 a threshold or guarantee fails; \
    4 a requirement is unmet.";

/// Options of `bench` that its short help shows; `--help` shows all.
const SHORT: [&str; 2] = ["template", "list"];

/// The command line with all that help and man pages say.
pub fn command() -> Command {
    let all = super::remote::add(Cli::command());
    let template = template(&all);
    all.help_template(template)
        .mut_subcommand("bench", |bench| {
            bench.mut_args(|option| {
                let is_short = SHORT.contains(&option.get_id().as_str());
                option.hide_short_help(!is_short)
            })
        })
}

/// The template of the front page.
fn template(all: &Command) -> String {
    let row = |verb: &&str| {
        let about = all.find_subcommand(verb).and_then(Command::get_about);
        let about = about.map(ToString::to_string).unwrap_or_default();
        format!("  {verb:<12} {about}\n")
    };
    let groups = GROUPS.map(|(purpose, verbs)| {
        let rows: String = verbs.iter().map(row).collect();
        format!("{purpose}:\n{rows}\n")
    });
    format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{}Options:\n{{options}}{{after-help}}",
        groups.concat()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_verb_is_in_exactly_one_group_and_fits_a_line() {
        let all = command();
        let mut verbs: Vec<&str> = all.get_subcommands().map(Command::get_name).collect();
        let mut grouped: Vec<&str> = GROUPS
            .iter()
            .flat_map(|(_, verbs)| *verbs)
            .copied()
            .collect();
        verbs.sort_unstable();
        grouped.sort_unstable();
        assert_eq!(grouped, verbs);
        for line in template(&all).lines() {
            assert!(line.len() <= 80 || line.starts_with('{'), "{line}");
        }
    }

    #[test]
    fn the_help_of_bench_begins_with_examples_and_its_short_form_fits_a_screen() {
        let mut all = command();
        all.build();
        let bench = all.find_subcommand_mut("bench").unwrap();
        let (short, long) = (bench.render_help(), bench.render_long_help());
        assert!(long.to_string().starts_with("Examples:\n"), "{long}");
        assert!(short.to_string().lines().count() <= 50, "{short}");
    }
}
