//! The parts of a run's page, and additions beside the run.

use maud::Markup;
use study::judge::Judged;
use study::published::Beside;
use study::{Compared, JobsStudy};

use crate::figure::Figure;

/// The input of sections.
pub(crate) struct Page<'a> {
    pub data: &'a JobsStudy,
    pub figures: Vec<Figure>,
}

/// One section of the page.
pub(crate) struct Section {
    /// The anchor for links within the page.
    pub id: &'static str,
    pub heading: String,
    pub body: Markup,
}

/// Additions of the page to the run itself.
#[derive(Clone, Copy, Default)]
pub struct Extras<'a> {
    /// Published figures.
    pub beside: Option<&'a Beside>,
    /// Verdicts on thresholds.
    pub judged: Option<&'a Judged>,
    /// The run as the second one, compared with a baseline run.
    pub compared: Option<&'a Compared>,
}
