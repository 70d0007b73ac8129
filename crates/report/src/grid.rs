//! A table, described once and shown twice: by a terminal, and by a page.

use maud::{Markup, Render, html};
use record::summary::CellSummary;
use stats::{Quantile, Ratio, Verdict};
use text::grid::{self, Text, render_parts};
use text::style::{Style, Tone};
use text::units::{Scale, Unit};
use text::words::{capital, clean, count, judged, needs, times, verdict};

/// With more rows than this, tables of detail are folded on a page.
const FOLDED: usize = 24;
/// Headings of so many characters may be broken on a page.
const WRAPPED: usize = 24;

/// The content of one cell of a table.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Cell {
    text: String,
    tone: Tone,
    /// Lines below the text.
    below: Vec<(String, Tone)>,
    /// Whether a terminal shows the first of them in parentheses, not only a page.
    aside: bool,
    code: bool,
}

impl Cell {
    pub fn new(text: impl Into<Cell>, tone: Tone) -> Cell {
        let cell = text.into();
        Cell { tone, ..cell }
    }

    /// With a line below that only a page shows; unchanged if it is empty.
    pub fn below(self, text: impl Into<String>) -> Cell {
        self.noted(text, Tone::Plain)
    }

    /// The same in a colour.
    pub fn noted(mut self, text: impl Into<String>, tone: Tone) -> Cell {
        self.below.push((text.into(), tone));
        self.below.retain(|(text, _)| !text.is_empty());
        self
    }

    /// With a text that a page shows below and a terminal in parentheses; unchanged without one.
    pub fn aside(self, text: Option<String>) -> Cell {
        let aside = text.is_some();
        let cell = self.below(text.unwrap_or_default());
        Cell { aside, ..cell }
    }

    /// Several lines; a terminal shows them in one.
    pub fn lines(lines: impl Iterator<Item = String>) -> Cell {
        let lines: Vec<String> = lines.map(|line| clean(&line)).collect();
        let text = lines.join("\n");
        Cell {
            text,
            ..Cell::default()
        }
    }

    /// Something to be typed.
    pub fn code(text: &str) -> Cell {
        let code = !text.is_empty();
        let text = if code { text } else { "-" };
        let cell = Cell::from(text);
        Cell { code, ..cell }
    }

    /// For a page; a name of a row may break after its slashes.
    fn markup(&self, names: bool) -> Markup {
        let text = html! {
            @for (place, line) in self.text.lines().enumerate() {
                @if place > 0 { br; }
                @if names { (breakable(line)) } @else { (line) }
            }
        };
        html! {
            @match class(self.tone) {
                _ if self.code => code { (self.text) },
                Some(class) => span class=(class) { (text) },
                None => (text),
            }
            @for (below, tone) in &self.below { br; span class=(class(*tone).unwrap_or("below")) { (below) } }
        }
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Cell {
        let text = clean(&text);
        Cell {
            text,
            ..Cell::default()
        }
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Cell {
        text.to_owned().into()
    }
}

impl From<u64> for Cell {
    fn from(n: u64) -> Cell {
        count(n).into()
    }
}

impl From<u32> for Cell {
    fn from(n: u32) -> Cell {
        count(n.into()).into()
    }
}

impl From<Text> for Cell {
    fn from(Text(text, tone): Text) -> Cell {
        Cell::new(text, tone)
    }
}

impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(cell: Option<T>) -> Cell {
        cell.map_or_else(|| "-".into(), Into::into)
    }
}

/// A count of something that should not occur.
pub(crate) fn lost(n: u64) -> Cell {
    Cell::new(n, if n > 0 { Tone::Bad } else { Tone::Plain })
}

/// A name, and below it that it is not real-time.
pub(crate) fn named(label: &str, real_time: bool) -> Cell {
    Cell::from(label).noted(if real_time { "" } else { NOT_REAL_TIME }, Tone::Caution)
}

/// The name of a cell with everything that must stand beside it.
pub(crate) fn name(cell: &CellSummary) -> Cell {
    named(&cell.label, cell.real_time).below(cell.does.as_deref().map(clean).unwrap_or_default())
}

/// The label of everything that ran in no real-time class.
pub(crate) const NOT_REAL_TIME: &str = "not real-time";

/// The colour of a ratio of times.
pub(crate) fn tone(ratio: &Ratio, rounds: u32) -> Tone {
    match judged(ratio, rounds) {
        Verdict::Larger => Tone::Caution,
        Verdict::Smaller => Tone::Good,
        Verdict::WithinNoise | Verdict::TooWide | Verdict::Undecided => Tone::Plain,
    }
}

/// A ratio, its interval, and the verdict on it.
pub(crate) fn told(ratio: &Ratio, rounds: u32) -> Cell {
    Cell::new(
        times(ratio, rounds) + verdict(ratio, rounds),
        tone(ratio, rounds),
    )
}

#[derive(Clone, Copy, PartialEq)]
enum Place {
    Both,
    Terminal,
    Page,
}

struct Column {
    heading: String,
    /// The second line of the heading on a page; in parentheses on a terminal.
    below: Option<String>,
    /// Whether it names its row.
    names: bool,
    right: bool,
    place: Place,
    cells: Vec<Cell>,
}

/// A table over `rows`, column by column.
///
/// A heading such as `CV\nsd / mean` has a second line in smaller letters.
pub(crate) struct Table<R> {
    caption: String,
    rows: Vec<R>,
    unit: Option<Unit>,
    folds: bool,
    stacked: bool,
    columns: Vec<Column>,
}

impl<R> Table<R> {
    pub fn new(caption: impl Into<String>, rows: impl IntoIterator<Item = R>) -> Table<R> {
        Table {
            caption: clean(&caption.into()),
            rows: rows.into_iter().collect(),
            unit: None,
            folds: false,
            stacked: false,
            columns: Vec::new(),
        }
    }

    /// Times in this unit where they reach it, not each column in its own.
    pub fn unit(self, unit: Option<Unit>) -> Table<R> {
        Table { unit, ..self }
    }

    /// Folded on a page when it has many rows.
    pub fn detail(self) -> Table<R> {
        let folds = true;
        Table { folds, ..self }
    }

    /// Shown as a list where a page is narrow: for columns of sentences.
    pub fn stacked(self) -> Table<R> {
        let stacked = true;
        Table { stacked, ..self }
    }

    fn add<C: Into<Cell>>(mut self, heading: &str, cell: impl Fn(&R) -> C) -> Table<R> {
        let (heading, below) = match heading.split_once('\n') {
            Some((heading, below)) => (heading, Some(clean(below))),
            None => (heading, None),
        };
        self.columns.push(Column {
            heading: clean(heading),
            below,
            names: false,
            right: false,
            place: Place::Both,
            cells: self.rows.iter().map(|row| cell(row).into()).collect(),
        });
        self
    }

    fn last(mut self, change: impl FnOnce(&mut Column)) -> Table<R> {
        if let Some(column) = self.columns.last_mut() {
            change(column);
        }
        self
    }

    /// The names of the rows.
    pub fn head<C: Into<Cell>>(self, heading: &str, cell: impl Fn(&R) -> C) -> Table<R> {
        self.add(heading, cell).last(|column| column.names = true)
    }

    pub fn text<C: Into<Cell>>(self, heading: &str, cell: impl Fn(&R) -> C) -> Table<R> {
        self.add(heading, cell)
    }

    pub fn number<C: Into<Cell>>(self, heading: &str, cell: impl Fn(&R) -> C) -> Table<R> {
        self.add(heading, cell).last(|column| column.right = true)
    }

    /// Times in ns, on one scale.
    pub fn times(self, heading: &str, ns: impl Fn(&R) -> Option<f64>) -> Table<R> {
        let scale = self.scale(&ns);
        self.number(heading, |row| ns(row).map(|ns| scale.show(ns)))
    }

    /// The scale of a column of times in ns.
    pub fn scale(&self, ns: impl Fn(&R) -> Option<f64>) -> Scale {
        Scale::within(self.unit, self.rows.iter().filter_map(ns))
    }

    /// A quantile with its interval, or how many samples it needs.
    pub fn quantile<'q>(self, heading: &str, of: impl Fn(&R) -> Option<&'q Quantile>) -> Table<R> {
        // Not the ends: one round with a stall would set the unit of all.
        let scale = self.scale(|row| Some(of(row)?.value_ns? as f64));
        self.number(heading, |row| {
            let q = of(row)?;
            let Some(ns) = q.value_ns else {
                return Some(needs(q).into());
            };
            let ends = q.low_ns.zip(q.high_ns);
            Some(match ends.map(|(low, high)| [low as f64, high as f64]) {
                Some(ends) => {
                    let (value, ends) = scale.with_ends(ns as f64, ends);
                    Cell::from(value).below(ends)
                }
                None => scale.show(ns as f64).into(),
            })
        })
    }

    /// Leaves the last column out if no row has anything there.
    pub fn if_any(mut self) -> Table<R> {
        let has = |cell: &Cell| !matches!(cell.text.as_str(), "" | "-");
        self.columns.pop_if(|column| !column.cells.iter().any(has));
        self
    }

    /// With further columns on a condition.
    pub fn when(self, condition: bool, more: impl FnOnce(Table<R>) -> Table<R>) -> Table<R> {
        if condition { more(self) } else { self }
    }

    /// The last column only on a page.
    pub fn on_page(self) -> Table<R> {
        self.last(|column| column.place = Place::Page)
    }

    /// The last column only on a terminal.
    pub fn on_terminal(self) -> Table<R> {
        self.last(|column| column.place = Place::Terminal)
    }

    /// Which rows are not real-time: a page says so below their names.
    pub fn labelled(self, real_time: impl Fn(&R) -> bool) -> Table<R> {
        let label = |row: &R| match real_time(row) {
            true => Cell::default(),
            false => Cell::new(NOT_REAL_TIME, Tone::Caution),
        };
        self.text("", label).on_terminal().if_any()
    }

    /// Whether there is nothing to show.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The columns of a terminal.
    pub fn columns(&self) -> Vec<grid::Column> {
        let text = |cell: &Cell| {
            let text = cell.text.replace('\n', "; ");
            match cell.below.first().filter(|_| cell.aside) {
                Some((below, _)) => Text(format!("{text} ({below})"), cell.tone),
                None => Text(text, cell.tone),
            }
        };
        let shown = (self.columns.iter()).filter(|column| column.place != Place::Page);
        let column = |column: &Column| grid::Column {
            heading: match &column.below {
                Some(below) => format!("{} ({below})", column.heading),
                None => column.heading.clone(),
            },
            right: column.right,
            texts: column.cells.iter().map(text).collect(),
        };
        shown.map(column).collect()
    }

    /// The lines of a terminal without the caption; empty without rows.
    pub fn lines(&self, style: Style) -> String {
        match self.is_empty() {
            true => String::new(),
            false => render_parts(&self.columns(), style),
        }
    }

    /// The caption, the table and an empty line; empty without rows.
    pub fn block(&self, style: Style) -> String {
        match self.is_empty() {
            true => String::new(),
            false => format!("{}\n\n{}\n", self.caption, self.lines(style)),
        }
    }
}

impl<R> Render for Table<R> {
    fn render(&self) -> Markup {
        let columns = (self.columns.iter()).filter(|column| column.place != Place::Terminal);
        let columns: Vec<&Column> = columns.collect();
        let class = |column: &Column| match column.heading.chars().count() {
            _ if column.right => Some("num"),
            WRAPPED.. => Some("wrap"),
            _ => None,
        };
        let caption = capital(&self.caption);
        let table = html! {
            div.scroll tabindex="0" role="region" aria-label=(caption) {
                table class=[self.stacked.then_some("stack")] {
                    caption { (caption) }
                    thead { tr { @for column in &columns {
                        th class=[class(column)] scope="col" {
                            (breakable(&column.heading))
                            @if let Some(below) = &column.below { br; span.below { (below) } }
                        }
                    } } }
                    tbody { @for row in 0..self.rows.len() { tr { @for column in &columns {
                        @if column.names { th scope="row" { (column.cells[row].markup(true)) } } @else {
                            td class=[column.right.then_some("num")] data-label=[self.stacked.then_some(&column.heading)] { (column.cells[row].markup(false)) }
                        }
                    } } } }
                }
            }
        };
        html! {
            @match self.rows.len() {
                0 => {},
                rows if self.folds && rows > FOLDED => details {
                    summary { (caption) ", " (count(rows as u64)) " rows" }
                    (table)
                },
                _ => (table),
            }
        }
    }
}

fn class(tone: Tone) -> Option<&'static str> {
    match tone {
        Tone::Plain => None,
        Tone::Caution => Some("caution"),
        Tone::Bad => Some("bad"),
        Tone::Good => Some("good"),
    }
}

/// A label that may break after its slashes: a narrow column breaks it somewhere, and `embedded/t au0` reads badly.
fn breakable(label: &str) -> Markup {
    html! {
        @for (place, part) in label.split_inclusive('/').enumerate() { @if place > 0 { wbr; } (part) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_break_behind_slashes_only() {
        let shown = |label| breakable(label).into_string();
        assert_eq!(shown("embedded/tau0"), "embedded/<wbr>tau0");
        assert_eq!(shown("podman-rootless"), "podman-rootless");
    }

    #[test]
    fn one_description_gives_both_tables() {
        let rows = [("a/b", Some(2_000.0)), ("<c>", None)];
        let table = Table::new("Times", rows)
            .head("cell", |(name, _)| named(name, false))
            .times("late\nof all", |(_, ns)| *ns)
            .number("jobs", |_| {
                Cell::from(1_000_u64).aside(Some("10 %".to_owned()))
            })
            .text("nothing", |_| "-")
            .if_any()
            .labelled(|_| false);
        let terminal = table.block(Style::default());
        assert!(
            terminal.starts_with("Times\n\ncell   late (of all)"),
            "{terminal}"
        );
        assert!(
            terminal.contains("1,000 (10 %)   not real-time"),
            "{terminal}"
        );
        let page = table.render().into_string();
        for part in [
            "late<br><span class=\"below\">of all</span>",
            "&lt;c&gt;<br><span class=\"caution\">not real-time</span>",
            "<td class=\"num\">1,000<br><span class=\"below\">10 %</span></td>",
            "a/<wbr>b",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
        assert!(!terminal.contains("nothing") && !page.contains("nothing"));
    }
}
