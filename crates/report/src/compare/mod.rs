//! Two runs side by side, for terminal and page.

mod page;
mod readings;
mod text;

pub use page::{compare_figures, compare_html};
pub use text::compare_table;

use ::text::style::Style;
use study::Compared;

use crate::html::Section;

/// Explains the ratio of two runs, without a full stop.
pub(crate) const RATIO_OF_ROUNDS: &str = "Each ratio is the geometric mean over rounds of the second run's median (or p99) divided by the \
    first's; the medians beside it pool the rounds, so dividing them may give a different ratio";

/// For a terminal.
pub fn compared_table(compared: &Compared, style: Style) -> String {
    match compared {
        Compared::Jobs(jobs) => compare_table(jobs, style),
        Compared::Readings(figures) => readings::table(figures, style),
    }
}

/// As one HTML file.
pub fn compared_html(compared: &Compared) -> String {
    match compared {
        Compared::Jobs(jobs) => compare_html(jobs),
        Compared::Readings(figures) => readings::html(figures),
    }
}

/// Its pictures as SVG files: name and content.
pub fn compared_pictures(compared: &Compared) -> Vec<(String, String)> {
    match compared {
        Compared::Jobs(jobs) => compare_figures(jobs),
        Compared::Readings(_) => Vec::new(),
    }
}

/// A comparison as a section of the second run's page.
pub(crate) fn section(compared: &Compared) -> Section {
    match compared {
        Compared::Jobs(jobs) => page::section(jobs),
        Compared::Readings(figures) => readings::section(figures),
    }
}
