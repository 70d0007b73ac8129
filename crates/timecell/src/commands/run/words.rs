//! Rewords messages about a mission made from a command line, so that they name options instead of keys of a file.

/// Advice in notes on keys of a mission file, and the advice that replaces it.
const SAID: [(&str, &str); 9] = [
    ("set `memory` for another limit", "--memory sets another"),
    (
        "set `latency`, or `latency_run` to a run of `timecell bench latency`",
        "a mission file can set it (`latency`)",
    ),
    (
        "`priorities` grants others",
        "--fifo or --rr grants another",
    ),
    ("`cpus` grants others", "--cpu grants others"),
    ("class = \"rr\" grants", "--rr grants"),
    ("enforcer = \"freezer\" grants", "--enforcer freezer grants"),
    ("class = \"deadline\" grants", "--enforcer deadline grants"),
    ("set it in `rights`", "set it with --user"),
    (
        "`timecell up` adopts them",
        "the same command line adopts it",
    ),
];

/// A note about a mission, reworded.
pub(super) fn note(text: &str) -> String {
    SAID.iter().fold(text.to_owned(), |text, (of_file, own)| {
        text.replace(of_file, own)
    })
}

/// Why a program is not admitted.
#[derive(Debug)]
pub(super) struct Why {
    /// A sentence.
    pub(super) text: String,
    /// Whether the reason is a task that can be late.
    pub(super) is_late: bool,
}

/// A refusal, with the option that might help; `has_both` tells that both a budget and tasks were given.
pub(super) fn refusal(why: &Why, priority: Option<(&str, u8)>, has_both: bool) -> String {
    let of_order = why.text.contains("above it on its cpu");
    let Why { text: why, is_late } = why;
    match (of_order, priority) {
        (true, None) => format!("{why}; set its priority with --fifo, or its cpu with --cpu"),
        (true, Some((option, own))) => {
            format!(
                "{why}; with {option} {own} it runs after higher priorities; choose another cpu with --cpu"
            )
        }
        (false, _) if *is_late && has_both => format!(
            "{}; without --reserve it gets the least budget with which its tasks meet their deadlines",
            note(why)
        ),
        (false, _) => note(why),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_named_where_a_file_would_be() {
        let told =
            note("app may use at most 64 MiB of memory: ...; set `memory` for another limit");
        assert!(told.ends_with("; --memory sets another"), "{told}");
        assert_eq!(note("plain"), "plain");
        let said = |text: &str, is_late: bool, has_both: bool| {
            let text = text.to_owned();
            refusal(&Why { text, is_late }, None, has_both)
        };
        let of_order = "with overruns, it and the cells above it on its cpu need 2";
        let told = said(of_order, true, true);
        assert!(
            told.contains("--fifo") && !told.contains("--reserve"),
            "{told}"
        );
        let late = "its budget does not supply enough by a deadline";
        let told = said(late, true, true);
        assert!(told.contains("without --reserve"), "{told}");
        assert_eq!(said(late, true, false), late);
        // Another budget does not help there.
        let no_cpu = "cpu 9 is not there";
        assert_eq!(said(no_cpu, false, true), no_cpu);
    }
}
