//! Additions to a program's lines: prefixes of log collectors, quoting, and escape sequences of terminals.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::Regex;

/// Any number of: a mark of quoting, a time (`ts`, docker, journal, GitLab), the stream of CRI, the names of compose, of pods (`kubectl
/// --prefix`, stern), and of a unit in the journal.
static PREFIX: LazyLock<Regex> = LazyLock::new(|| {
    let day = r"(?:[A-Z][a-z]{2} )?(?:\d{4}-\d\d-\d\d[T ]|[A-Z][a-z]{2} [ \d]?\d (?:\d{4} )?)";
    let clock = r"\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d| [A-Z]{3,4})?";
    let time = format!(r"\[?(?:{day}{clock}|{clock})\]?|\d+\.\d{{6}}|\[ *\d+\.\d{{6}}\]");
    let bar = r"[\w.-]+ +\|(?: |$)|\[[\w.-]+\] +\|(?: |$)";
    let pod = r"\[pod/[^\]]+\] |[a-z][a-z0-9.-]*-[a-z0-9]{5} [a-z][a-z0-9-]* ";
    let name = format!(r"(?P<name>{bar}|{pod}|(?:[\w.-]+ )?[\w.@/-]+\[\d+\]: ?)");
    let all = format!(
        r"^(?:\s*(?:>+ ?|(?:{time})(?: \d\d[OE]\+?)?(?:\s|$)|(?:stdout|stderr) [FP](?: |$)|{name}))+"
    );
    Regex::new(&all).expect("a valid expression")
});

/// Sequences of ANSI terminals, also as syslog writes them.
static ESCAPE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?:\x1b|#033)(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*\x07?|[@-Z\\^_])")
        .expect("a valid expression")
});

/// A line without escape sequences.
pub(super) fn unescaped(line: &str) -> Cow<'_, str> {
    match line.contains(['\x1b', '#']) {
        true => ESCAPE.replace_all(line, ""),
        false => Cow::Borrowed(line),
    }
}

/// The length of a line's prefix, and the program that it names.
pub(super) fn prefix(line: &str) -> Option<(usize, &str)> {
    let found = PREFIX.captures(line)?;
    let name = found.name("name").map_or("", |name| name.as_str().trim());
    Some((found[0].len(), name))
}

/// The line in an entry of docker's `json-file` log.
pub(super) fn logged(line: &str) -> Option<String> {
    let entry: serde_json::Value = serde_json::from_str(line).ok()?;
    Some(entry.get("log")?.as_str()?.trim_end().to_owned())
}
