//! The driver of all text formats: it reads the lines of a [`Source`], asks the format for the meaning of each, and decides about runs that
//! follow one another, lines of others, and a cut end. A format is only its lines, as a [`Lines`].

use std::collections::HashMap;

use model::InputError;

use super::super::source::cut;
use super::tally::Tally;
use super::{
    Distribution, MOST_DISTRIBUTIONS, Measured, Options, Said, Source, Unit, excerpt, fault, sense,
};

/// The remedy where a table ends too early.
pub(super) const CUT: &str = "the tool that wrote it may have been stopped early";
/// The fault of a line that cannot belong to the run before it.
pub(super) const SECOND: &str = "a second run begins: put each into its own file";

/// The meaning of a line.
pub(super) enum Line {
    /// The tool wrote it.
    Own,
    /// It is of someone else, or says nothing.
    Other,
    /// It begins another run, and the format has files of several.
    Next,
}

/// The lines of one run of a tool.
pub(super) trait Lines {
    /// The tool.
    fn tool(&self) -> &'static str;

    /// Whether several runs in one file are values of one series.
    fn adds_up(&self) -> bool {
        false
    }

    /// Takes a line. The error is a clause on its fault.
    fn line(&mut self, line: &str, run: &mut Run) -> Result<Line, String>;

    /// Takes the end of the run, after its counts were added up. A clause names the lack.
    fn end(&mut self, _: &mut Run) -> Result<(), String> {
        Ok(())
    }
}

/// One run, as it is read.
pub(super) struct Run {
    pub measured: Measured,
    /// One for each thread, cpu or task.
    pub series: Vec<Series>,
    /// The unit that the caller named.
    pub unit: Option<Unit>,
    /// How the tool writes a histogram, in a note where it wrote none.
    pub hint: &'static str,
    places: HashMap<String, usize>,
    /// The time since its start that the last header showed.
    clock: Vec<u64>,
}

/// A distribution, as it is read.
pub(super) struct Series {
    pub d: Distribution,
    pub values: Tally,
    /// The thread that measured it, as the tool numbers it.
    thread: Option<String>,
    /// The number of its last value, and the clock of its last block of figures.
    seq: Option<u64>,
    block: Option<Vec<u64>>,
}

impl Run {
    fn new(tool: &str, unit: Option<Unit>) -> Run {
        Run {
            measured: Measured::by(tool),
            series: Vec::new(),
            unit,
            hint: "",
            places: HashMap::new(),
            clock: Vec::new(),
        }
    }

    /// The unit of values, ns, where files do not state it: that of the caller, else nanoseconds with `-N` in the command line, else
    /// microseconds.
    pub fn unit_ns(&self) -> i64 {
        let by_command = if self.says_ns() { Unit::Ns } else { Unit::Us };
        self.unit.unwrap_or(by_command).ns()
    }

    fn says_ns(&self) -> bool {
        let is_n = |word: &str| {
            let short = word.strip_prefix('-').filter(|word| !word.starts_with('-'));
            let short = short.map(|word| word.trim_start_matches(|c| "mMqrRsSuvX".contains(c)));
            word == "--nsecs" || word == "--nsec" || short.is_some_and(|word| word.starts_with('N'))
        };
        let command = self.measured.command.as_deref().unwrap_or_default();
        command.split_whitespace().any(is_n)
    }

    /// Notes the unit, if the caller did not name it.
    pub fn tell_the_unit(&mut self) {
        match (self.unit, self.says_ns()) {
            (Some(_), _) => {}
            (None, true) => self.note("values are read as nanoseconds, as the command line has -N"),
            (None, false) => self.note(
                "values are read as microseconds, truncated by the tool; if -N was used, say --unit ns",
            ),
        }
    }

    /// Adds a note, unless a hostile file has made thousands.
    pub fn note(&mut self, note: impl Into<String>) {
        if self.measured.notes.len() < 1_000 {
            self.measured.notes.push(note.into());
        }
    }

    /// Notes the values that the file lacks, so that it cannot show that a limit is kept.
    pub fn lacks(&mut self, what: impl Into<String>) {
        let what = what.into();
        self.measured.incomplete = Some(what.clone());
        self.note(what);
    }

    /// Begins again with series for this number of threads, whose values are in columns.
    pub fn restart(&mut self, threads: usize, quantity: &str) -> Result<(), String> {
        let unit_ns = self.unit_ns();
        self.series.clear();
        self.places.clear();
        (0..threads).try_for_each(|thread| {
            self.series(&format!("thread {thread}"), quantity, unit_ns)
                .map(|_| ())
        })
    }

    /// Takes a header, which precedes all values of its run.
    pub fn header(&self) -> Result<(), String> {
        match self.series.is_empty() {
            true => Ok(()),
            false => Err(SECOND.to_owned()),
        }
    }

    /// Takes the time since the start of the run; an empty one is none.
    pub fn clock(&mut self, clock: &[u64]) -> Result<(), String> {
        if !clock.is_empty() && *clock < *self.clock {
            return Err(format!("its clock goes back, so {SECOND}"));
        }
        if !clock.is_empty() {
            self.clock = clock.to_vec();
        }
        Ok(())
    }

    /// The series of this name, a new one if there is none.
    pub fn series(
        &mut self,
        name: &str,
        quantity: &str,
        unit_ns: i64,
    ) -> Result<&mut Series, String> {
        let at = self.place(name, quantity, unit_ns)?;
        Ok(&mut self.series[at])
    }

    /// Its index.
    pub fn place(&mut self, name: &str, quantity: &str, unit_ns: i64) -> Result<usize, String> {
        if let Some(at) = self.places.get(name) {
            return Ok(*at);
        }
        let at = self.series.len();
        if at == MOST_DISTRIBUTIONS {
            return Err("there are more than 65,536 threads, columns or runs".to_owned());
        }
        self.places.insert(name.to_owned(), at);
        self.series.push(Series {
            d: Distribution::new(excerpt(name), quantity, unit_ns),
            values: Tally::default(),
            thread: None,
            seq: None,
            block: None,
        });
        Ok(at)
    }

    /// Takes a row with a word for each series.
    pub fn row(
        &mut self,
        words: &[&str],
        mut take: impl FnMut(&mut Series, &str) -> Result<(), String>,
    ) -> Result<(), String> {
        if words.len() != self.series.len() {
            let columns = self.series.len();
            return Err(format!(
                "{} values in a table of {columns} columns",
                words.len()
            ));
        }
        let mut pairs = self.series.iter_mut().zip(words);
        pairs.try_for_each(|(series, word)| take(series, word))
    }
}

impl Series {
    /// Takes figures of all values until now: tools print them repeatedly while they run.
    pub fn says(&mut self, said: Said) -> Result<(), String> {
        said.follows(&self.d.said, self.d.unit_ns)
            .map_err(|what| format!("{what}, so {SECOND}"))?;
        self.d.said = said;
        Ok(())
    }

    /// Takes the thread that measured it.
    pub fn is_of(&mut self, thread: &str) -> Result<(), String> {
        match self.thread.replace(thread.to_owned()) {
            Some(known) if known != thread => Err(format!("its thread is another, so {SECOND}")),
            _ => Ok(()),
        }
    }

    /// Takes the number of the next value, if it has one.
    pub fn follows(&mut self, seq: Option<u64>) -> Result<(), String> {
        match (self.seq, seq) {
            (Some(last), Some(seq)) if seq <= last => {
                Err(format!("the activations begin again, so {SECOND}"))
            }
            _ => {
                self.seq = seq.or(self.seq);
                Ok(())
            }
        }
    }

    /// Takes the beginning of a block of figures at this clock.
    pub fn block(&mut self, at: Vec<u64>) -> Result<(), String> {
        match self.block.replace(at) {
            Some(before) if self.block.as_ref() <= Some(&before) => Err(SECOND.to_owned()),
            _ => Ok(()),
        }
    }
}

/// The numbers of a time, in their order.
pub(super) fn clock(text: &str) -> Vec<u64> {
    let numbers = text.split(|c: char| !c.is_ascii_digit());
    numbers.filter_map(|number| number.parse().ok()).collect()
}

/// Reads the runs of a text.
pub(super) fn read<L: Lines>(
    source: &mut Source,
    options: Options,
    new: impl Fn() -> L,
) -> Result<Measured, InputError> {
    let mut runs: Vec<Run> = Vec::new();
    let mut lines = new();
    let mut run = Run::new(lines.tool(), options.unit);
    let mut others = Others::default();
    let mut program = String::new();
    let (mut last, mut held) = (0, 0);
    while let Some(line) = source.line()? {
        let at = |what: String| fault(line.number, what, "");
        last = line.number;
        let had = !run.series.is_empty();
        if !had && let Some(command) = others.command.take() {
            run.measured.command = Some(command);
        }
        let mut meaning = match is_prose(&line.text) {
            true => Line::Other,
            false => lines.line(&line.text, &mut run).map_err(at)?,
        };
        if let Line::Next = meaning {
            finish(&mut lines, &mut run)
                .map_err(|what| at(format!("run {}, {what}", runs.len() + 1)))?;
            held += run.series.len();
            if held >= MOST_DISTRIBUTIONS {
                return Err(at("the file contains more than 65,536 series".to_owned()));
            }
            runs.push(std::mem::replace(
                &mut run,
                Run::new(lines.tool(), options.unit),
            ));
            lines = new();
            others.command = None;
            meaning = lines.line(&line.text, &mut run).map_err(at)?;
        }
        if let Line::Other = meaning {
            if let Some(format) = sense::of_line(&line.text) {
                return Err(at(format!(
                    "the output of another tool begins ({format}): put each into its own file"
                )));
            }
            others.take(&line.text, line.number, lines.tool());
            continue;
        }
        if line.is_cut {
            return Err(cut(line.number));
        }
        let named = !line.program.is_empty() && !program.is_empty();
        let called = had && others.command.is_some() && !lines.adds_up();
        if called || named && program != line.program {
            return Err(at(SECOND.to_owned()));
        }
        line.program.clone_into(&mut program);
        others.began |= !run.series.is_empty();
    }
    finish(&mut lines, &mut run).map_err(|what| {
        let several = format!("run {}, ", runs.len() + 1);
        let place = if runs.is_empty() { "" } else { &several };
        fault(last, format!("{place}{what}"), CUT)
    })?;
    runs.push(run);
    let mut measured = joined(runs)?;
    measured.notes.extend(others.note());
    Ok(measured)
}

/// Adds up the counts of a run and ends it.
fn finish<L: Lines>(lines: &mut L, run: &mut Run) -> Result<(), String> {
    for Series { d, values, .. } in &mut run.series {
        std::mem::take(values).fill(d);
    }
    lines.end(run)?;
    let has_none =
        |d: &Distribution| d.counts.is_empty() && d.overflow.is_none() && d.quantiles.is_empty();
    if !run.series.is_empty() && run.series.iter().all(|series| has_none(&series.d)) {
        let hint = run.hint;
        run.note(format!(
            "the file has no histogram, so there are no quantiles{hint}"
        ));
    }
    Ok(())
}

/// The runs as one file; series are named after their run if there are several.
fn joined(runs: Vec<Run>) -> Result<Measured, InputError> {
    let several = runs.len() > 1;
    let mut all: Option<Measured> = None;
    for (run, number) in runs.into_iter().zip(1..) {
        let mut measured = run.measured;
        let place = format!("run {number}, ");
        measured.distributions = run.series.into_iter().map(|series| series.d).collect();
        for d in measured.distributions.iter_mut().filter(|_| several) {
            d.name.insert_str(0, &place);
        }
        for note in measured.notes.iter_mut().filter(|_| several) {
            note.insert_str(0, &place);
        }
        match &mut all {
            None => all = Some(measured),
            Some(all) => {
                all.distributions.append(&mut measured.distributions);
                all.notes.append(&mut measured.notes);
            }
        }
    }
    all.ok_or_else(|| InputError::new("", "the file is empty", CUT))
}

/// The lines that the tool did not write.
#[derive(Default)]
struct Others {
    began: bool,
    count: usize,
    first: usize,
    /// A command line of the tool, such as after a prompt.
    command: Option<String>,
}

impl Others {
    fn take(&mut self, line: &str, number: usize, tool: &str) {
        let tool = tool.split(' ').next().unwrap_or(tool);
        let command = line.find(tool).map(|at| &line[at..]);
        if let Some(command) = command.filter(|line| line[tool.len()..].contains(" -")) {
            self.command = Some(command.split('#').next().unwrap_or(command).to_owned());
        }
        if self.began && !line.is_empty() {
            self.count += 1;
            self.first = if self.count == 1 { number } else { self.first };
        }
    }

    fn note(&self) -> Option<String> {
        let (count, first) = (self.count, self.first);
        let note = format!("lines of others are ignored: {count}, the first is line {first}");
        (count > 0).then_some(note)
    }
}

/// Whether a line is a sentence that begins with a number, not a row.
fn is_prose(line: &str) -> bool {
    let is_word = |word: &str| word.len() > 1 && word.chars().all(char::is_alphabetic);
    line.starts_with(|c: char| c.is_ascii_digit()) && line.split(' ').nth(1).is_some_and(is_word)
}

/// A count, or a clause that says why it is none.
pub(super) fn count(text: &str) -> Result<u64, String> {
    text.parse()
        .map_err(|_| format!("`{}` is not a count", excerpt(text)))
}
