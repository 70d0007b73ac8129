use super::{css, n};
use maud::{Markup, PreEscaped, html};

/// What surrounds a figure that stands alone.
pub(crate) struct Dress<'a> {
    /// The heading above it.
    pub title: &'a str,
    /// What to look for; read to those who cannot see it.
    pub caption: &'a str,
    /// The line below it.
    pub note: &'a str,
    /// Width and height of the figure itself in px.
    pub size: (f64, f64),
}

/// The figure as an SVG document: white ground, its heading above, a note below.
pub(crate) fn document(dress: &Dress, body: &Markup) -> String {
    let (head, foot) = (34.0, 26.0);
    let (width, height) = (dress.size.0, dress.size.1 + head + foot);
    let document = html! {
        svg class="fig" xmlns="http://www.w3.org/2000/svg" width=(n(width)) height=(n(height))
            viewBox=(format!("0 0 {} {}", n(width), n(height))) role="img" aria-labelledby="t d" {
            title id="t" { (dress.title) }
            desc id="d" { (dress.caption) }
            style { (PreEscaped(css(true))) }
            rect class="plate" width="100%" height="100%" {}
            text class="head" x="12" y="22" { (dress.title) }
            g transform=(format!("translate(0 {head})")) { (body) }
            text class="faint" x="12" y=(n(height - 9.0)) { (dress.note) }
        }
    };
    document.into_string()
}
