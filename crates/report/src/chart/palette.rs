//! Colours that colour-blind readers can tell apart (Okabe and Ito, "Color universal design", 2008), with a dash and
//! a mark each so that colour never speaks alone.

/// Looks that differ; a figure with more series repeats them.
pub(crate) const LOOKS: usize = 8;

/// Names and values of the colours on white.
pub(crate) const LIGHT: [(&str, &str); 14] = [
    ("--paper", "#ffffff"),
    ("--ink", "#1b1f24"),
    ("--faint", "#59636e"),
    ("--grid", "#e3e6ea"),
    ("--rule", "#8b949e"),
    ("--c0", "#0072b2"),
    ("--c1", "#d55e00"),
    ("--c2", "#007f5f"),
    ("--c3", "#b0508a"),
    ("--c4", "#a86f00"),
    ("--c5", "#2f8fc4"),
    ("--c6", "#5b4bb7"),
    ("--c7", "#4d4d4d"),
    ("--tail", "#c8321b"),
];

/// The same on a dark ground.
pub(crate) const DARK: [(&str, &str); 14] = [
    ("--paper", "#14181d"),
    ("--ink", "#e6e9ed"),
    ("--faint", "#a2abb5"),
    ("--grid", "#2b323a"),
    ("--rule", "#6b7683"),
    ("--c0", "#5ab4e5"),
    ("--c1", "#ff9152"),
    ("--c2", "#3fc79f"),
    ("--c3", "#e59ac8"),
    ("--c4", "#e6b04c"),
    ("--c5", "#8fd0f4"),
    ("--c6", "#a99df0"),
    ("--c7", "#c4c4c4"),
    ("--tail", "#ff7a66"),
];

/// The light colours as CSS declarations.
pub(crate) fn light() -> String {
    declarations(&LIGHT)
}

/// The dark colours as CSS declarations.
pub(crate) fn dark() -> String {
    declarations(&DARK)
}

fn declarations(colours: &[(&str, &str)]) -> String {
    let each = colours
        .iter()
        .map(|(name, value)| format!("{name}:{value};"));
    each.collect()
}

/// How the classes of figures look. With `fixed`, colours are written out for viewers that do not support variables.
pub(crate) fn css(fixed: bool) -> String {
    const DASHES: [&str; LOOKS] = [
        "none",
        "7 3",
        "2 3",
        "9 3 2 3",
        "4 2",
        "12 4",
        "1 2",
        "6 2 2 2 2 2",
    ];
    let mut css = String::from(
        ".fig{font:13px system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif}\
         .fig text{fill:var(--ink)}.fig .faint{fill:var(--faint)}\
         .fig .head{font-weight:600}\
         .fig .mid{text-anchor:middle}.fig .end{text-anchor:end}\
         .fig .grid{stroke:var(--grid);fill:none}.fig .rule{stroke:var(--rule);fill:none}\
         .fig .ref{stroke:var(--ink);fill:none;stroke-dasharray:5 4}\
         .fig .line{fill:none;stroke-width:1.8;stroke-linejoin:round}\
         .fig .mark{fill:none;stroke-width:1.3}\
         .fig .box{stroke-width:1.4;fill-opacity:.22}\
         .fig .median{stroke-width:3;fill:none}\
         .fig .band{fill-opacity:.55;stroke-width:.6}\
         .fig .bar{fill-opacity:.85}.fig .bar2{fill-opacity:.35;stroke-width:1.3}\
         .fig .tail{stroke:var(--tail);fill:none;stroke-width:1.2}\
         .fig .tailtext{fill:var(--tail)}\
         .fig .over{paint-order:stroke;stroke:var(--paper);stroke-width:4px;stroke-linejoin:round}\
         .fig .plate{fill:var(--paper)}",
    );
    for (look, dash) in DASHES.iter().enumerate() {
        css += &format!(
            ".fig .s{look}{{stroke:var(--c{look})}}.fig .f{look}{{fill:var(--c{look})}}\
             .fig .d{look}{{stroke-dasharray:{dash}}}"
        );
    }
    if fixed {
        for (name, value) in LIGHT {
            css = css.replace(&format!("var({name})"), value);
        }
    }
    css
}
