//! Formats whose lines are patterns with figures in them: such a format is a table, a [`Grammar`].
//!
//! A rule is `kind series > pattern`; without a series, figures are of that of the lines before, and a quantity of its own may follow a `|`. In a
//! pattern `{key}` is a word that ends at a space or at the character after it, `{}` any word, `{..}` all before the next text, `{key*}` and
//! `{*}` the rest of the line; spaces may stand between all of them. Keys of figures: `n` (values until now), `min`, `mean`, `max`, `median`,
//! `share` (percent) with `q`, `value` (a single one, with `or` the larger of both) and `times` with it. Keys of identity: `id`, `at` and `stamp`
//! (a clock), `seq` (a number that rises). The others say something about the run or its series.

use super::lines::{Line, Lines, Run, SECOND, clock, count};
use super::tables::CYCLICTEST;
use super::{Said, Unit, excerpt, time};

/// Kind of a line with a pattern, besides its figures.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A line of the tool.
    Own,
    /// A part of a line that matches another rule as a whole.
    Part,
    /// It precedes all figures of a run.
    Title,
    /// Figures of the series follow, and its maximum is the last of them; without a series they are no times.
    Block,
    /// It ends a run.
    Last,
    /// A line that begins like this must match another rule.
    Must,
}
use Kind::{Block, Last, Must, Own, Part, Title};

/// Their names in rules.
const KINDS: [(&str, Kind); 6] = [
    ("own", Own),
    ("part", Part),
    ("title", Title),
    ("block", Block),
    ("last", Last),
    ("must", Must),
];

/// Kind, series and pattern.
type Rule = (Kind, &'static str, &'static str);

/// A format.
pub(super) struct Grammar {
    pub name: &'static str,
    pub files: &'static str,
    /// Patterns of lines that recognise a file.
    pub signs: &'static [&'static str],
    pub tool: &'static str,
    pub quantity: &'static str,
    /// The unit of its figures, ns; `None` if it is the caller's.
    pub unit_ns: Option<i64>,
    /// How the tool writes a histogram, in a note where it wrote none.
    pub hint: &'static str,
    /// One in each line.
    pub rules: &'static str,
    /// Takes the end of the run, as [`Lines::end`].
    pub end: fn(&mut Table, &mut Run) -> Result<(), String>,
}

/// The parts that most of them have.
pub(super) const MICROSECONDS: Grammar = Grammar {
    name: "",
    files: "",
    signs: &[],
    tool: "",
    quantity: "wake-up latency",
    unit_ns: Some(1_000),
    hint: "",
    rules: "",
    end: |_, _| Ok(()),
};

/// A run, as it is read by a grammar.
pub(super) struct Table {
    grammar: &'static Grammar,
    rules: Vec<Rule>,
    /// The series of the lines that follow, and its quantity if it has its own.
    place: Option<(String, Option<&'static str>)>,
    /// The number of values of the figures that follow.
    pub cycles: Option<u64>,
    /// The thread that measured them.
    id: Option<String>,
    /// The unit that a title names.
    unit: Option<Unit>,
    /// The maximum of a block has not been seen.
    open: bool,
    /// A title and the last line were seen.
    pub titled: bool,
    pub ended: bool,
    /// The number of losses that the tool counts, and the threshold below which it keeps nothing, ns.
    pub lost: u64,
    pub above_ns: Option<i64>,
}

impl Default for Table {
    fn default() -> Table {
        Table::of(&CYCLICTEST)
    }
}

impl Lines for Table {
    fn tool(&self) -> &'static str {
        self.grammar.tool
    }

    fn line(&mut self, line: &str, run: &mut Run) -> Result<Line, String> {
        let mut is_own = false;
        for at in 0..self.rules.len() {
            let (kind, series, pattern) = self.rules[at];
            let Some(found) = scan(pattern, line) else {
                continue;
            };
            if kind == Must && !is_own {
                return Err(format!(
                    "cut short or damaged: `{}` is not a whole line",
                    excerpt(line)
                ));
            }
            self.take(kind, series, &found, run)?;
            is_own |= kind != Part;
        }
        Ok(if is_own { Line::Own } else { Line::Other })
    }

    fn end(&mut self, run: &mut Run) -> Result<(), String> {
        run.hint = self.grammar.hint;
        if self.open {
            return Err("cut short: a block of figures ends before its maximum".to_owned());
        }
        if self.grammar.unit_ns.is_none() {
            run.tell_the_unit();
        }
        (self.grammar.end)(self, run)
    }
}

impl Table {
    pub fn of(grammar: &'static Grammar) -> Table {
        let rules = grammar.rules.lines().filter_map(|line| {
            let (head, pattern) = line.split_once(" > ")?;
            let (kind, series) = head.trim().split_once(' ').unwrap_or((head.trim(), ""));
            let known = KINDS.iter().find(|known| known.0 == kind);
            debug_assert!(known.is_some(), "no kind of rule is called `{kind}`");
            Some((known?.1, series.trim(), pattern))
        });
        Table {
            grammar,
            rules: rules.collect(),
            place: None,
            cycles: None,
            id: None,
            unit: None,
            open: false,
            titled: false,
            ended: false,
            lost: 0,
            above_ns: None,
        }
    }

    fn take(
        &mut self,
        kind: Kind,
        series: &'static str,
        found: &[(&str, &str)],
        run: &mut Run,
    ) -> Result<(), String> {
        let of = |key: &str| found.iter().find(|pair| pair.0 == key).map(|pair| pair.1);
        if kind == Title {
            run.header()?;
        }
        if matches!(kind, Title | Last) && self.ended {
            return Err(SECOND.to_owned());
        }
        self.titled |= kind == Title;
        self.ended |= kind == Last;
        let stamps: Vec<&str> = found
            .iter()
            .filter(|pair| ["at", "stamp"].contains(&pair.0))
            .map(|pair| pair.1)
            .collect();
        let at = clock(&stamps.join(" "));
        run.clock(&at)?;
        if let Some(version) = of("version") {
            run.measured.version = Some(excerpt(version).into_owned());
        }
        if let Some(command) = of("command") {
            run.measured.command = Some(command.to_owned());
        }
        if let Some(kernel) = of("kernel") {
            run.measured.machine = Some(format!("Linux {kernel}"));
        }
        if let Some(named) = of("unit") {
            self.unit = Unit::NAMES
                .into_iter()
                .find(|unit| unit.0 == named)
                .map(|unit| unit.1);
        }
        let unit_ns = self
            .unit
            .map_or(self.grammar.unit_ns.unwrap_or(run.unit_ns()), Unit::ns);
        let number = |key: &str| of(key).map(|word| time(word, unit_ns)).transpose();
        self.above_ns = number("above")?.or(self.above_ns);
        let lost = of("lost").map(count).transpose()?;
        self.lost = lost.unwrap_or(0).max(self.lost);
        if kind == Block {
            if std::mem::take(&mut self.open) {
                return Err("cut short: a block of figures ends before its maximum".to_owned());
            }
            (self.place, self.cycles) = (None, None);
        }
        self.cycles = of("n").map(count).transpose()?.or(self.cycles);
        self.id = of("id").map(str::to_owned).or(self.id.take());
        if !series.is_empty() {
            self.place = Some(named(series, found));
        }
        let figures = ["value", "share", "median", "min", "mean", "max"];
        let has_none = !figures.into_iter().any(|key| of(key).is_some());
        let Some((name, own)) = self.place.as_ref().filter(|_| kind == Block || !has_none) else {
            return Ok(());
        };
        let series_of_run = run.series(name, own.unwrap_or(self.grammar.quantity), unit_ns)?;
        series_of_run.d.cpu = of("cpu")
            .and_then(|cpu| cpu.parse().ok())
            .or(series_of_run.d.cpu);
        if kind == Block {
            self.open = true;
            series_of_run.d.quantiles.clear();
            return series_of_run.block(at);
        }
        if let Some(id) = &self.id {
            series_of_run.is_of(id)?;
        }
        if let Some(ns) = number("value")? {
            series_of_run.follows(of("seq").map(count).transpose()?)?;
            let times = of("times").map(count).transpose()?;
            series_of_run
                .values
                .add_times(ns.max(number("or")?.unwrap_or(ns)), times.unwrap_or(1));
            return Ok(());
        }
        if let Some((share, ns)) = of("share").zip(number("q")?) {
            return series_of_run.d.named(share, ns);
        }
        if let Some(ns) = number("median")? {
            return series_of_run.d.named("50", ns);
        }
        let before = series_of_run.d.said;
        let [min, mean, max] = [number("min")?, number("mean")?, number("max")?];
        let mut said = Said {
            cycles: self.cycles.or(before.cycles),
            ..before
        };
        if self.cycles != Some(0) {
            said.min_ns = min.or(before.min_ns);
            said.mean_ns = mean.map(|ns| ns as f64).or(before.mean_ns);
            said.max_ns = max.or(before.max_ns);
        }
        series_of_run.says(said)?;
        self.open &= max.is_none();
        // A count on a line of its own is that of the next line only.
        if !series.is_empty() && of("n").is_none() && self.id.is_some() {
            self.cycles = None;
        }
        let interval = of("interval").map(|us| time(us, 1_000)).transpose()?;
        if let (Some(interval), Some(mean), None) = (interval, mean, run.unit)
            && mean > interval
        {
            return Err(
                "its mean exceeds its interval: if -N was used, say --unit ns, else --unit us"
                    .to_owned(),
            );
        }
        Ok(())
    }

    /// That a run which had a title also had its last line, which begins like this.
    pub fn is_whole(&self, last: &str) -> Result<(), String> {
        match self.titled && !self.ended {
            true => Err(format!("cut short: no line `{last}`")),
            false => Ok(()),
        }
    }
}

/// Whether one of the patterns is that of a line.
pub(super) fn matches(patterns: &[&'static str], line: &str) -> bool {
    patterns.iter().any(|pattern| scan(pattern, line).is_some())
}

/// That all series have a maximum, which a line of this kind states.
pub(super) fn have_maxima(run: &Run, line: &str) -> Result<(), String> {
    match run
        .series
        .iter()
        .all(|series| series.d.said.max_ns.is_some())
    {
        true => Ok(()),
        false => Err(format!("cut short: no line `{line}`")),
    }
}

/// The series that a rule and a line name: numbers stand without zeros before them.
fn named(rule: &'static str, found: &[(&str, &str)]) -> (String, Option<&'static str>) {
    let (name, quantity) = rule
        .split_once('|')
        .map_or((rule, None), |(name, quantity)| (name, Some(quantity)));
    let name = found.iter().fold(name.to_owned(), |name, (key, word)| {
        let plain = word
            .parse::<u64>()
            .map_or((*word).to_owned(), |number| number.to_string());
        name.replace(&format!("{{{key}}}"), &plain)
    });
    (name, quantity)
}

/// Keys of words that are no numbers.
const WORDS: [&str; 7] = ["", "name", "id", "unit", "version", "kernel", "to"];

/// The words of a line that its pattern names, if it matches as a whole.
fn scan<'a>(mut pattern: &'static str, mut line: &'a str) -> Option<Vec<(&'static str, &'a str)>> {
    let mut found = Vec::new();
    loop {
        (pattern, line) = (pattern.trim_start(), line.trim_start());
        let Some(next) = pattern.chars().next() else {
            return line.is_empty().then_some(found);
        };
        if next != '{' {
            line = line.strip_prefix(next)?;
            pattern = &pattern[next.len_utf8()..];
            continue;
        }
        let (key, rest) = pattern[1..].split_once('}')?;
        if let Some(key) = key.strip_suffix('*') {
            found.push((key, line.trim()));
            return Some(found);
        }
        pattern = rest;
        if key == ".." {
            let text = rest.split(['{', ' ']).next()?;
            line = &line[line.find(text)?..];
            continue;
        }
        let stop = rest.chars().next().filter(|c| *c != '{');
        let end = line.find(|c: char| c.is_whitespace() || Some(c) == stop);
        let (word, after) = line.split_at(end.unwrap_or(line.len()));
        let begins = |word: &str| word.starts_with(|c: char| c.is_ascii_digit() || c == '.');
        if word.is_empty() || !WORDS.contains(&key) && !begins(word.trim_start_matches(['-', '+']))
        {
            return None;
        }
        // Seconds since 1970 with nine digits behind them.
        if key == "stamp" && (word.len() < 20 || word.as_bytes()[10] != b'.') {
            return None;
        }
        found.push((key, word));
        line = after;
    }
}
