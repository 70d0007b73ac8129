//! Columns of texts as lines for a terminal.

use crate::style::{Style, Tone};

/// One text of a column, and its colour.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Text(pub String, pub Tone);

#[derive(Debug, Clone, PartialEq, Eq)]
/// One column: its heading and one text per cell.
pub struct Column {
    /// Its heading.
    pub heading: String,
    /// Whether it is right-aligned, as numbers are.
    pub right: bool,
    /// The text of each row.
    pub texts: Vec<Text>,
}

/// Rows as columns; those at the indices in `numbers` are right-aligned.
pub fn from_rows<const N: usize>(
    headings: &[&str; N],
    rows: Vec<[Text; N]>,
    numbers: std::ops::Range<usize>,
) -> Vec<Column> {
    let mut texts: [Vec<Text>; N] = std::array::from_fn(|_| Vec::new());
    for row in rows {
        for (column, text) in texts.iter_mut().zip(row) {
            column.push(text);
        }
    }
    let columns = headings.iter().zip(texts).enumerate();
    columns
        .map(|(place, (heading, texts))| {
            let column = Column::new(heading, texts);
            if numbers.contains(&place) {
                column.right()
            } else {
                column
            }
        })
        .collect()
}

/// Columns as lines: headings first, three spaces between columns, no trailing spaces.
pub fn render(columns: &[Column], style: Style) -> String {
    render_some(&columns.iter().collect::<Vec<_>>(), style)
}

fn render_some(columns: &[&Column], style: Style) -> String {
    let widths: Vec<usize> = columns.iter().map(|column| column.width()).collect();
    let rows = columns.iter().map(|column| column.texts.len()).max();
    let mut out = String::new();
    let headings: Vec<Text> = columns
        .iter()
        .map(|column| Text(column.heading.clone(), Tone::Plain))
        .collect();
    line(
        &mut out,
        style,
        columns,
        &widths,
        &headings.iter().collect::<Vec<_>>(),
    );
    for row in 0..rows.unwrap_or(0) {
        let texts: Vec<&Text> = columns.iter().map(|column| &column.texts[row]).collect();
        line(&mut out, style, columns, &widths, &texts);
    }
    out
}

impl Column {
    /// A column of texts with their colours.
    pub fn new(heading: &str, texts: Vec<Text>) -> Column {
        Column {
            heading: heading.to_owned(),
            right: false,
            texts,
        }
    }

    /// A column of plain texts.
    pub fn plain(heading: &str, texts: Vec<String>) -> Column {
        let dress = |text| Text(text, Tone::Plain);
        Column::new(heading, texts.into_iter().map(dress).collect())
    }

    /// The same, right-aligned as numbers are.
    pub fn right(mut self) -> Column {
        self.right = true;
        self
    }

    /// Width in characters.
    pub fn width(&self) -> usize {
        let texts = self.texts.iter().map(|text| text.0.chars().count());
        texts
            .chain([self.heading.chars().count()])
            .max()
            .unwrap_or(0)
    }
}

fn line(out: &mut String, style: Style, columns: &[&Column], widths: &[usize], texts: &[&Text]) {
    let mut row = String::new();
    let mut pending = 0;
    for ((column, &width), text) in columns.iter().zip(widths).zip(texts) {
        let room = width - text.0.chars().count().min(width);
        let (before, behind) = if column.right { (room, 0) } else { (0, room) };
        if text.0.is_empty() {
            pending += width + 3;
            continue;
        }
        row.push_str(&" ".repeat(pending + before));
        row.push_str(&style.paint(text.1, &text.0));
        pending = behind + 3;
    }
    out.push_str(&row);
    out.push('\n');
}

/// A table that is wider than a narrow terminal is split into several, one below the other, each with the names. Pipes and
/// files count as 120 columns wide and get one table.
pub fn render_parts(columns: &[Column], style: Style) -> String {
    let width = |columns: &[&Column]| columns.iter().map(|c| c.width() + 3).sum::<usize>() - 3;
    let all: Vec<&Column> = columns.iter().collect();
    if style.width >= PIPE || width(&all) <= style.width {
        return render(columns, style);
    }
    let mut parts: Vec<Vec<&Column>> = Vec::new();
    for column in &columns[1..] {
        let fits = |part: &&mut Vec<&Column>| {
            width(&part.iter().copied().chain([column]).collect::<Vec<_>>()) <= style.width
        };
        match parts.last_mut().filter(fits) {
            Some(part) => part.push(column),
            None => parts.push(vec![&columns[0], column]),
        }
    }
    let texts: Vec<String> = parts.iter().map(|part| render_some(part, style)).collect();
    texts.join("\n")
}

/// Width of a line if the terminal's width is unknown.
const PIPE: usize = 120;
