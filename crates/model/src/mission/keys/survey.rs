//! Holding a document against the declared keys.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{Kind, Need, Shape, TOP};
use crate::InputError;
use crate::mission::faults::Faults;
use crate::mission::{Place, SCHEMA};
use crate::reader::{Source, Table};

/// Holds a document against the declared keys: unknown and absent ones, wrong types, values out of range. Every fault is
/// reported, and the places whose values nobody may rely on are marked.
pub(in super::super) fn survey(
    source: Source<'_>,
    document: &DeTable<'_>,
    faults: &mut Faults<'_>,
) {
    Survey { source, faults }.table(&TOP, &Place::top(), 0, document);
}

/// What is wrong with a file of a newer timecell: it may have keys that nobody here knows, and one sentence says more than
/// all of them.
pub(in super::super) fn newer(source: Source<'_>, document: &DeTable<'_>) -> Option<InputError> {
    let top = Table::lenient(source, TOP.title, 0, document);
    let schema = top.integer("schema", &(1..=i64::MAX)).ok().flatten()?;
    (schema > SCHEMA).then(|| {
        top.fault(
            "schema",
            format!("schema {schema} is newer than this timecell, which reads up to {SCHEMA}"),
            "use a newer timecell",
        )
    })
}

struct Survey<'s, 'f, 'n> {
    source: Source<'s>,
    faults: &'f mut Faults<'n>,
}

impl Survey<'_, '_, '_> {
    fn table(&mut self, shape: &'static Shape, at: &Place, start: usize, table: &DeTable<'_>) {
        let known = shape.names();
        let reader = Table::lenient(self.source, shape.title, start, table);
        for (meant, error) in reader.unknown(&known) {
            self.faults.push(error);
            if let Some(meant) = meant.filter(|meant| !reader.has(meant)) {
                self.faults.doubt(&at.key(meant));
            }
        }
        for key in shape.keys {
            match (reader.item(key.name), key.need) {
                (Some(item), _) => self.value(&key.kind, &at.key(key.name), key.name, item),
                (None, Need::Required(example)) if self.faults.is_clear(&at.key(key.name)) => {
                    let error = match key.kind {
                        Kind::Tables { .. } => {
                            let what = format!("there is no [[{}]]", key.name);
                            reader.fault(key.name, what, format!("add {example}"))
                        }
                        _ => reader.missing(key.name, example),
                    };
                    self.faults.unclear(&at.key(key.name), error);
                }
                (None, _) => {}
            }
        }
        if shape.choice {
            self.choice(shape, at, &reader, table.len());
        }
    }

    /// Just one key of a table.
    fn choice(&mut self, shape: &Shape, at: &Place, reader: &Table<'_>, said: usize) {
        let names = shape.names();
        let known: Vec<&str> = (names.iter().copied())
            .filter(|name| reader.has(name))
            .collect();
        let mend = format!("write one of {}", names.join(", "));
        match known.as_slice() {
            [_] => {}
            [] if said > 0 => self.faults.doubt(at),
            [] => {
                let error = reader.fault("", format!("{} is empty", shape.title), mend);
                self.faults.unclear(at, error);
            }
            [.., second] => {
                let what = format!("{} has {}", shape.title, known.join(" and "));
                let error = reader.fault(second, what, mend);
                self.faults.unclear(at, error);
            }
        }
    }

    fn value(&mut self, kind: &Kind, place: &Place, key: &str, item: &Spanned<DeValue<'_>>) {
        let label = format!("`{key}`");
        match (kind, item.get_ref()) {
            (Kind::Table(shape), DeValue::Table(table)) => {
                self.table(shape, place, item.span().start, table);
            }
            (Kind::Tables { of, most }, DeValue::Array(items)) => {
                self.count(place, &label, item, (1, *most));
                for (index, item) in items.iter().take(*most).enumerate() {
                    self.one_of(of, &place.item(index), key, item);
                }
            }
            (
                Kind::List {
                    of, least, most, ..
                },
                DeValue::Array(items),
            ) => {
                self.count(place, &label, item, (*least, *most));
                for (index, item) in items.iter().take(*most).enumerate() {
                    self.scalar(
                        of,
                        &place.item(index),
                        &format!("an item of {label}"),
                        key,
                        item,
                    );
                    if !self.faults.is_clear(&place.item(index)) {
                        self.faults.doubt(place);
                    }
                }
                if matches!(kind, Kind::List { unique: true, .. }) {
                    self.unique(place, &label, items);
                }
            }
            (Kind::Environment, DeValue::Table(table)) => {
                for (name, item) in table {
                    let name = name.get_ref().as_ref();
                    let place = place.key(name);
                    if name.is_empty() || name.contains(['=', '\0']) {
                        let what = format!("`{}` is no name of a variable", name.escape_debug());
                        let error = (self.source).error(
                            item.span().start,
                            what,
                            "use letters, digits and `_`",
                        );
                        self.faults.unclear(&place, error);
                    }
                    self.scalar(
                        &Kind::Word,
                        &place,
                        &format!("`{}`", name.escape_debug()),
                        name,
                        item,
                    );
                }
            }
            _ => self.scalar(kind, place, &label, key, item),
        }
    }

    fn one_of(
        &mut self,
        shape: &'static Shape,
        place: &Place,
        key: &str,
        item: &Spanned<DeValue<'_>>,
    ) {
        match item.get_ref() {
            DeValue::Table(table) => self.table(shape, place, item.span().start, table),
            _ => self.scalar(
                &Kind::Table(shape),
                place,
                &format!("an item of `{key}`"),
                key,
                item,
            ),
        }
    }

    fn scalar(
        &mut self,
        kind: &Kind,
        place: &Place,
        label: &str,
        key: &str,
        item: &Spanned<DeValue<'_>>,
    ) {
        if let Err(wrong) = kind.fault(label, key, item.get_ref()) {
            let error = (self.source).error(item.span().start, wrong.what, wrong.mend);
            self.faults.unclear(place, error);
        }
    }

    fn count(
        &mut self,
        place: &Place,
        label: &str,
        item: &Spanned<DeValue<'_>>,
        (least, most): (usize, usize),
    ) {
        let count = item.get_ref().as_array().map_or(0, |items| items.len());
        let wrong = if count < least {
            Some((
                format!("{label} is empty"),
                "name one at least, or remove the line".to_owned(),
            ))
        } else if count > most {
            Some((
                format!("{label} has {count} items"),
                format!("it may have {most}"),
            ))
        } else {
            None
        };
        if let Some((what, mend)) = wrong {
            let error = self.source.error(item.span().start, what, mend);
            self.faults.unclear(place, error);
        }
    }

    /// Reports what a list holds twice.
    fn unique(&mut self, place: &Place, label: &str, items: &[Spanned<DeValue<'_>>]) {
        let mut seen = std::collections::HashSet::new();
        for (index, item) in items.iter().enumerate() {
            let Some(text) = said(item.get_ref()) else {
                continue;
            };
            if !seen.insert(text.clone()) && self.faults.is_clear(&place.item(index)) {
                let what = format!("{label} names {} twice", text.escape_debug());
                let error = (self.source).error(item.span().start, what, "name it once");
                self.faults.push(error);
            }
        }
    }
}

/// A text as it is, and a number the same however it is written.
fn said(value: &DeValue<'_>) -> Option<String> {
    if let Some(text) = value.as_str() {
        return Some(format!("`{text}`"));
    }
    let number = value.as_integer()?;
    let number = i64::from_str_radix(number.as_str(), number.radix()).ok()?;
    Some(number.to_string())
}
