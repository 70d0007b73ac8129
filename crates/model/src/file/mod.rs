//! Reading the files that users write: experiments, task sets and missions. Each kind of file declares its tables of keys
//! once ([`shape`]). From them follow the survey that finds every formal fault with its line, the values with their defaults,
//! the JSON Schema and the tables of the documentation. The declarer of a kind of file also checks how its values fit
//! together, and adds to the same list of faults.

#[cfg(test)]
pub(crate) mod agree;
mod faults;
mod fits;
mod foreign;
mod lines;
mod node;
mod place;
#[cfg(test)]
pub(crate) mod reference;
mod schema;
mod shape;
mod survey;
mod table;
mod value;
mod words;

pub(crate) use faults::Faults;
pub use foreign::foreign;
pub(crate) use lines::Lines;
pub(crate) use node::{Node, Value};
pub use place::Place;
pub(crate) use schema::schema;
pub(crate) use shape::{Format, Key, Kind, LONGEST_NS, Need, Shape, keys, names, names_of};
pub(crate) use table::{Field, Table, Writer, table, tables};
pub use words::nearest;
pub(crate) use words::{is_name, quoted, unknown};

use toml::de::DeTable;

use crate::{InputError, InputErrors};
use survey::Source;

/// Reads a text; `build` makes its value and reports faults in how its parts fit together. It is called even if the survey
/// found faults, so that all faults are reported at once: a value that could not be read has its default there, and no fault is
/// reported for it.
pub(crate) fn read<T>(
    format: &Format,
    name: &str,
    text: &str,
    build: impl FnOnce(&Node<'_>, &mut Faults<'_>) -> T,
) -> Result<(T, Lines), InputErrors> {
    if text.len() > format.most_bytes {
        let what = format!("the file has {} bytes", text.len());
        let fix = format!("a {} file has at most {}", format.name, format.most_bytes);
        return Err(InputError::new(name, what, fix).at(1).into());
    }
    let ends = lines::ends(text);
    let source = Source { name, ends: &ends };
    let (document, errors) = DeTable::parse_recoverable(text);
    if let Some((kind, fix)) = foreign(text).filter(|_| !errors.is_empty()) {
        let what = format!("it is {kind}, not the TOML of a {}", format.name);
        return Err(InputError::new(name, what, fix).at(1).into());
    }
    let syntax = (errors.iter()).map(|error| {
        let offset = error.span().map_or(0, |span| span.start);
        let message = error.message().replace('\n', ", ");
        source.error(offset, format!("not TOML: {message}"), "")
    });
    if let Some(errors) = InputErrors::of(syntax.take(Faults::MOST).collect()) {
        return Err(errors);
    }
    let document = document.get_ref();
    if let Some(newer) = survey::newer(format, source, document) {
        return Err(newer.into());
    }
    let lines = Lines::of(&ends, document);
    let mut faults = Faults::new(name, &lines);
    survey::survey(format, source, document, &mut faults);
    let value = build(&Node::new(Place::top(), format.top, document), &mut faults);
    match faults.into_errors() {
        Some(errors) => Err(errors),
        None => Ok((value, lines)),
    }
}
