//! Which format a file is of, by what it holds.

use model::InputError;

/// A format of measured values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// `cyclictest --json`, and tools of rt-tests that write the same.
    CyclictestJson,
    /// cyclictest's text: `-h`, `-H`, `--histfile`, or the summary lines `T: 0 ...`.
    CyclictestText,
    /// `oslat --json`.
    OslatJson,
    /// `rtla timerlat hist` or `rtla osnoise hist`.
    RtlaHist,
    /// jitterdebugger's results.json.
    JitterdebuggerJson,
    /// jitterdebugger's samples.raw.
    JitterdebuggerRaw,
    /// A log of one rt-app task.
    RtAppLog,
    /// Lines `Iteration N - Execution Time: X ms`.
    Iterations,
    /// hackbench's text.
    Hackbench,
}

impl Format {
    /// Every format and the name by which users ask for it.
    pub const NAMES: [(&'static str, Format); 9] = [
        ("cyclictest-json", Format::CyclictestJson),
        ("cyclictest-hist", Format::CyclictestText),
        ("oslat-json", Format::OslatJson),
        ("rtla-hist", Format::RtlaHist),
        ("jitterdebugger-json", Format::JitterdebuggerJson),
        ("jitterdebugger-raw", Format::JitterdebuggerRaw),
        ("rt-app-log", Format::RtAppLog),
        ("iterations", Format::Iterations),
        ("hackbench", Format::Hackbench),
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        let named = Format::NAMES.iter().find(|(_, format)| *format == self);
        named.map_or("", |(name, _)| name)
    }
}

/// Names of all formats, for messages.
fn names() -> String {
    let names: Vec<&str> = Format::NAMES.iter().map(|(name, _)| *name).collect();
    names.join(", ")
}

/// How much of a text is looked at: more than what tools print before their first telling line.
const LOOK: usize = 65_536;

/// The format of a file, by its content.
pub(super) fn sense(name: &str, bytes: &[u8]) -> Result<Format, InputError> {
    let head = &bytes[..bytes.len().min(LOOK)];
    if head.contains(&0) {
        return if super::raw::looks_like(bytes) {
            Ok(Format::JitterdebuggerRaw)
        } else {
            Err(unknown(
                name,
                "it is binary, and its records are not those of jitterdebugger's samples.raw",
            ))
        };
    }
    let head = String::from_utf8_lossy(head);
    let has = |part: &str| head.contains(part);
    if head
        .trim_start_matches('\u{feff}')
        .trim_start()
        .starts_with('{')
    {
        return match () {
            () if has("\"tasks\"") => Err(unknown(
                name,
                "it is a task set of rt-app: `timecell analyze` reads it",
            )),
            () if has("\"freq\"") && has("\"duration\"") => Ok(Format::OslatJson),
            () if has("\"rt_test_version") || has("\"num_threads\"") => Ok(Format::CyclictestJson),
            () if has("\"cpu\"") && has("\"sysinfo\"") => Ok(Format::JitterdebuggerJson),
            () => Err(unknown(name, "it is JSON of no tool that is known here")),
        };
    }
    let line = |test: fn(&str) -> bool| head.lines().any(|line| test(line.trim()));
    match () {
        () if has("# RTLA") => Ok(Format::RtlaHist),
        () if line(|l| l.starts_with("#idx")) => Ok(Format::RtAppLog),
        () if line(|l| l.starts_with("# Histogram") || super::cyclictest_text::is_status(l)) => {
            Ok(Format::CyclictestText)
        }
        () if line(|l| l.starts_with("Iteration ") && l.contains("Execution Time")) => {
            Ok(Format::Iterations)
        }
        () if line(|l| l.starts_with("Running in ") && l.contains("mode with")) => {
            Ok(Format::Hackbench)
        }
        () => Err(unknown(
            name,
            "its content is of no format that is known here",
        )),
    }
}

fn unknown(name: &str, what: &str) -> InputError {
    InputError::new(
        name,
        format!("not a file that can be drawn: {what}"),
        format!(
            "the formats are {}; --format says outright which it is",
            names()
        ),
    )
}
