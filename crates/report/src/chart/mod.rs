//! The few parts that every picture is made of: axes, grid, marks, and shared colours.
//!
//! SVG is written directly, as markup. The plotting library considered (plotters) puts colours into every element,
//! writes one element per mark, knows no dashes, titles or descriptions, and ticks a logarithmic axis at decades
//! only; here marks of one kind are one path, colours are classes that follow light and dark, and an axis that spans
//! less than a decade still has numbers.

mod axis;
mod document;
mod mark;
mod palette;
mod parts;

pub(crate) use axis::Axis;
pub(crate) use document::{Dress, document};
pub(crate) use mark::{Mark, marks, sample};
pub(crate) use palette::{LOOKS, css, dark, light};
pub(crate) use parts::{
    Band, Entry, legend, legend_height, n, name_room, row_names, title_below, title_left, x_axis,
    y_axis,
};
