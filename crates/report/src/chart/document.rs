//! A figure that stands alone.

use super::{css, n};
use maud::{Markup, PreEscaped, html};
use text::style::Style;

/// A figure's surroundings in a document of its own.
pub(crate) struct Dress<'a> {
    /// The heading above it.
    pub title: &'a str,
    /// Its explanation; read to those who cannot see it.
    pub caption: &'a str,
    /// The line below it.
    pub note: &'a str,
    /// Width and height of the figure itself in px.
    pub size: (f64, f64),
}

/// Width of a character in px, generously: of the heading, which is bold, and of the note.
const HEADING: f64 = 8.0;
const NOTE: f64 = 6.9;

/// Height of a line in px.
const LINE: f64 = 17.0;

/// The figure as an SVG document: white background, heading above, note below; both are wrapped if they are long.
pub(crate) fn document(dress: &Dress, body: &Markup) -> String {
    let room = dress.size.0 - 24.0;
    let titles = lines(dress.title, room / HEADING);
    let notes = lines(dress.note, room / NOTE);
    let more = |lines: &[String]| lines.len().saturating_sub(1) as f64 * LINE;
    let (head, foot) = (34.0 + more(&titles), 26.0 + more(&notes));
    let (width, height) = (dress.size.0, dress.size.1 + head + foot);
    let below = height - 9.0 - more(&notes);
    let document = html! {
        svg class="fig" xmlns="http://www.w3.org/2000/svg" width=(n(width)) height=(n(height))
            viewBox=(format!("0 0 {} {}", n(width), n(height))) role="img" aria-labelledby="t d" {
            title id="t" { (dress.title) }
            desc id="d" { (dress.caption) }
            style { (PreEscaped(css(true))) }
            rect class="plate" width="100%" height="100%" {}
            @for (place, line) in titles.iter().enumerate() {
                text class="head" x="12" y=(n(22.0 + place as f64 * LINE)) { (line) }
            }
            g transform=(format!("translate(0 {})", n(head))) { (body) }
            @for (place, line) in notes.iter().enumerate() {
                text class="faint" x="12" y=(n(below + place as f64 * LINE)) { (line) }
            }
        }
    };
    document.into_string()
}

/// The text wrapped at spaces into lines of at most so many characters; a longer word gets its own line.
fn lines(text: &str, room: f64) -> Vec<String> {
    let style = Style {
        width: room.max(1.0) as usize,
        ..Style::default()
    };
    let broken = style.wrap(text, 0);
    broken.lines().map(str::to_owned).collect()
}
