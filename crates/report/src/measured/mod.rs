//! Files of other tools, drawn: `timecell report FILE...`. A table, a page with the tails and the histograms of every
//! thread, and a summary for machines. Values beyond a tool's histogram are counted and shown everywhere; a quantile
//! that lies among them is "above" and never a number that was not measured.

mod figure;
mod page;
mod text;

pub use page::measured_html;
pub use text::measured_table;

use record::import::measured::{Distribution, Measured, Overflow};
use study::{QUANTILES, Shown, shown};

use ::text::units::time;
use ::text::words::{clean, count, plural};

/// A quantile in words; `show` prints a time.
fn words(shown: Shown, show: impl Fn(i64) -> String) -> String {
    match shown {
        Shown::At(ns) => show(ns),
        Shown::Above(ns) => format!("above {}", show(ns)),
        Shown::Needs(needed) => format!("needs {}", count(needed)),
        Shown::Absent => "-".to_owned(),
    }
}

/// Values beyond the histogram, in words.
fn overflow(d: &Distribution) -> String {
    match d.overflow {
        None => "0".to_owned(),
        Some(Overflow {
            count: Some(n),
            at_least_ns,
        }) => {
            format!("{} of {} or more", count(n), time(at_least_ns as f64))
        }
        Some(Overflow {
            count: None,
            at_least_ns,
        }) => {
            format!("some of {} or more", time(at_least_ns as f64))
        }
    }
}

/// How many values there are, as far as the file says.
fn total(d: &Distribution) -> String {
    match d.total() {
        // Smallest and largest may be all that the file holds.
        Some(0) if d.max_ns().is_some() => d.said.cycles.map_or("unknown".to_owned(), count),
        Some(0) => d.said.cycles.map_or("0".to_owned(), count),
        Some(total) => count(total),
        None => d.said.cycles.map_or("unknown".to_owned(), count),
    }
}

/// The tool with its version, in words.
fn tool(file: &Measured) -> String {
    let version = file.version.as_deref().map(|v| format!(" {v}"));
    clean(&format!("{}{}", file.tool, version.unwrap_or_default()))
}

/// Files and distributions in a line.
fn heading(files: &[Measured]) -> String {
    let of = files
        .iter()
        .map(|file| file.distributions.len() as u64)
        .sum();
    format!(
        "{}, {}",
        plural(files.len() as u64, "file"),
        plural(of, "distribution")
    )
}

/// Quantities in the order in which they first occur.
fn quantities(files: &[Measured]) -> Vec<&str> {
    let mut found: Vec<&str> = Vec::new();
    for d in files.iter().flat_map(|file| &file.distributions) {
        if !found.contains(&d.quantity.as_str()) {
            found.push(&d.quantity);
        }
    }
    found
}

/// Every distribution of a quantity with its file.
fn of_quantity<'a>(
    files: &'a [Measured],
    quantity: &'a str,
) -> impl Iterator<Item = (&'a Measured, &'a Distribution)> {
    files.iter().flat_map(move |file| {
        let of = file.distributions.iter();
        of.filter(move |d| d.quantity == quantity)
            .map(move |d| (file, d))
    })
}

/// The name in tables and legends: the thread's, and the file's or run's where there are several.
fn label(files: &[Measured], file: &Measured, d: &Distribution) -> String {
    if files.len() == 1 {
        return clean(&d.name);
    }
    let short = file.file.rsplit('/').next().unwrap_or(&file.file);
    clean(&format!("{short}: {}", d.name))
}

#[cfg(test)]
mod tests;
