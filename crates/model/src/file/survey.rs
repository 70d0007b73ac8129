//! Checking a document against the declared keys.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::lines::line;
use super::node::lacks;
use super::value::{self, Wrong};
use super::{Faults, Format, Kind, Need, Place, Shape, nearest};
use crate::InputError;

/// The name of a text and its line ends, for turning byte offsets into lines.
#[derive(Clone, Copy)]
pub(super) struct Source<'a> {
    pub name: &'a str,
    pub ends: &'a [usize],
}

impl Source<'_> {
    pub fn error(
        &self,
        offset: usize,
        what: impl Into<String>,
        fix: impl Into<String>,
    ) -> InputError {
        InputError::new(self.name, what, fix).at(line(self.ends, offset))
    }
}

/// Checks a document against the declared keys: unknown and missing ones, wrong types, values out of range. Every fault is
/// reported, and places whose values must not be relied on are marked.
pub(super) fn survey(
    format: &Format,
    source: Source<'_>,
    document: &DeTable<'_>,
    faults: &mut Faults<'_>,
) {
    let is_required = true;
    let mut survey = Survey {
        format,
        document,
        source,
        faults,
        is_required,
    };
    survey.table(format.top, &Place::top(), 0, document);
}

/// The fault of a file of a newer timecell: it may have many unknown keys, and one sentence says more than all of them.
pub(super) fn newer(
    format: &Format,
    source: Source<'_>,
    document: &DeTable<'_>,
) -> Option<InputError> {
    let (newest, item) = (format.schema, get(document, "schema")?);
    let schema = value::integer("schema", item.get_ref(), &(1..=i64::MAX)).ok()?;
    (schema > newest).then(|| {
        let what =
            format!("schema {schema} is newer than this timecell, which reads up to {newest}");
        source.error(item.span().start, what, "use a newer timecell")
    })
}

fn get<'a>(table: &'a DeTable<'a>, key: &str) -> Option<&'a Spanned<DeValue<'a>>> {
    let mut items = table.iter();
    items.find_map(|(name, item)| (name.get_ref() == key).then_some(item))
}

struct Survey<'s, 'f, 'n> {
    format: &'s Format,
    document: &'s DeTable<'s>,
    source: Source<'s>,
    faults: &'f mut Faults<'n>,
    /// Whether the current key is required.
    is_required: bool,
}

impl Survey<'_, '_, '_> {
    /// A value that cannot be read, or is missing.
    fn unclear(
        &mut self,
        place: &Place,
        offset: usize,
        what: impl Into<String>,
        fix: impl Into<String>,
    ) {
        // Of thousands of faults most are not listed.
        if self.faults.are_many() {
            self.faults.doubt(place);
            return;
        }
        let error = self.source.error(offset, what, fix);
        self.faults.unclear(place, error);
    }

    fn table(&mut self, shape: &'static Shape, at: &Place, start: usize, table: &DeTable<'_>) {
        self.unknown(shape, at, table);
        for key in shape.keys {
            let place = at.key(key.name);
            match (get(table, key.name), key.need) {
                (Some(item), need) => {
                    self.is_required = matches!(need, Need::Required(_));
                    self.value(
                        &key.kind,
                        &place,
                        &format!("`{}`", key.name),
                        key.name,
                        item,
                    );
                }
                (None, Need::Required(example)) if self.faults.is_clear(&place) => {
                    let (what, fix) = match key.kind {
                        Kind::Tables { of, .. } => (
                            format!("there is no {}", of.title),
                            format!("add {example}"),
                        ),
                        _ => lacks(shape, key.name, example),
                    };
                    self.unclear(&place, start, what, fix);
                }
                (None, _) => {}
            }
        }
        if shape.choice {
            self.choice(shape, at, start, table);
        }
    }

    /// Reports every key that is not declared, in the order of the file.
    fn unknown(&mut self, shape: &Shape, at: &Place, table: &DeTable<'_>) {
        let unknown = table
            .iter()
            .filter(|(key, _)| shape.key(key.get_ref()).is_none());
        let mut unknown: Vec<(usize, &str)> = unknown
            .map(|(key, _)| (key.span().start, key.get_ref().as_ref()))
            .collect();
        unknown.sort_unstable();
        for (offset, key) in unknown {
            // Each is compared with every key that is there: in vain where none is listed.
            if self.faults.are_many() {
                break;
            }
            let names = shape.names();
            let near = nearest(key, &names);
            let fix = match near {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("the keys here are {}", names.join(", ")),
            };
            let what = format!("unknown key `{}` in {}", key.escape_debug(), shape.title);
            self.faults.push(self.source.error(offset, what, fix));
            if let Some(meant) = near.filter(|meant| get(table, meant).is_none()) {
                self.faults.doubt(&at.key(meant));
            }
        }
    }

    /// A table of which only one key may be set.
    fn choice(&mut self, shape: &Shape, at: &Place, start: usize, table: &DeTable<'_>) {
        let names = shape.names();
        let known: Vec<&str> = (names.iter().copied())
            .filter(|name| get(table, name).is_some())
            .collect();
        let fix = format!("write one of {}", names.join(", "));
        match known.as_slice() {
            [_] => {}
            [] if !table.is_empty() => self.faults.doubt(at),
            [] => self.unclear(at, start, format!("{} is empty", shape.title), fix),
            [.., second] => {
                let what = format!("{} has {}", shape.title, known.join(" and "));
                let offset = get(table, second).map_or(start, |item| item.span().start);
                self.unclear(at, offset, what, fix);
            }
        }
    }

    /// A value; `label` names it in messages, `key` is the key that it belongs to.
    fn value(
        &mut self,
        kind: &Kind,
        place: &Place,
        label: &str,
        key: &str,
        item: &Spanned<DeValue<'_>>,
    ) {
        let start = item.span().start;
        match (kind, item.get_ref()) {
            (Kind::Any(kinds, _), found) => match kinds.iter().find(|kind| kind.takes(found)) {
                Some(kind) => self.value(kind, place, label, key, item),
                None => self.scalar(kind, place, label, key, item),
            },
            (Kind::Table(shape), DeValue::Table(table)) => self.table(shape, place, start, table),
            (Kind::Tables { of, most }, DeValue::Array(items)) => {
                self.count(place, label, item, (1, *most));
                for (index, item) in items.iter().take(*most).enumerate() {
                    let label = format!("an item of {label}");
                    self.value(&Kind::Table(of), &place.item(index), &label, key, item);
                }
            }
            (
                Kind::List {
                    of,
                    least,
                    most,
                    unique,
                },
                DeValue::Array(items),
            ) => {
                self.count(place, label, item, (*least, *most));
                for (index, item) in items.iter().take(*most).enumerate() {
                    let label = format!("an item of {label}");
                    self.value(of, &place.item(index), &label, key, item);
                    if !self.faults.is_clear(&place.item(index)) {
                        self.faults.doubt(place);
                    }
                }
                if *unique {
                    self.unique(place, label, items);
                }
            }
            (Kind::Environment, DeValue::Table(table)) => {
                for (name, item) in table {
                    let name = name.get_ref().as_ref();
                    let (place, shown) = (place.key(name), format!("`{}`", name.escape_debug()));
                    if name.is_empty() || name.contains(['=', '\0']) {
                        let what = format!("{shown} is not a variable name");
                        let fix = "use letters, digits and `_`";
                        self.unclear(&place, item.span().start, what, fix);
                    }
                    self.scalar(&Kind::Word, &place, &shown, name, item);
                }
            }
            _ => self.scalar(kind, place, label, key, item),
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
        let narrower = (self.format.narrower)(key, self.document, self.faults);
        let kind = narrower.unwrap_or(kind);
        if let Err(Wrong { what, fix }) = kind.fault(label, key, item.get_ref()) {
            self.unclear(place, item.span().start, what, fix);
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
        let (what, fix) = match count {
            _ if count < least => (
                format!("{label} is empty"),
                match self.is_required {
                    true => "give at least one".to_owned(),
                    false => "give at least one, or remove the line".to_owned(),
                },
            ),
            _ if count > most => (
                format!("{label} has {count} items"),
                format!("at most {most} are allowed"),
            ),
            _ => return,
        };
        self.unclear(place, item.span().start, what, fix);
    }

    /// Reports items that a list has twice.
    fn unique(&mut self, place: &Place, label: &str, items: &[Spanned<DeValue<'_>>]) {
        let mut seen = std::collections::HashSet::new();
        for (index, item) in items.iter().enumerate() {
            let Some(text) = said(item.get_ref()) else {
                continue;
            };
            if !seen.insert(text.clone()) && self.faults.is_clear(&place.item(index)) {
                let what = format!("{label} contains {} twice", text.escape_debug());
                let error = (self.source).error(item.span().start, what, "name it once");
                self.faults.push(error);
            }
        }
    }
}

/// A text unchanged, a number in one form however it is written.
fn said(value: &DeValue<'_>) -> Option<String> {
    if let Some(text) = value.as_str() {
        return Some(format!("`{text}`"));
    }
    Some(value::whole(value)?.to_string())
}

#[cfg(test)]
mod tests {
    use crate::taskset::TaskSet;

    const MANY: usize = 30_000;

    fn told(text: &str) -> Vec<String> {
        let faults = TaskSet::parse("s.toml", text).expect_err("must be refused");
        faults.iter().map(ToString::to_string).collect()
    }

    // Counting lines from the beginning for each fault, or comparing each unknown key with all others, takes a minute here.
    #[test]
    fn thousands_of_faults_are_told_up_to_a_thousand() {
        let head = "schema = 1\n[[cell]]\nname = \"c\"\n";
        let task = |period: &str, at: usize| {
            format!("[[cell.task]]\nname = \"t{at}\"\nwcet = \"1ms\"\nperiod = {period}\n")
        };
        let tasks = |period: &str| (0..MANY).map(|at| task(period, at)).collect::<String>();
        let last = task("10", MANY);
        let one = told(&format!("{head}{}{last}", tasks("\"10ms\"")));
        assert_eq!(one.len(), 1);
        assert!(
            one[0].starts_with("s.toml:120007: `period` has no unit"),
            "{}",
            one[0]
        );
        let many = told(&format!("{head}{}", tasks("10")));
        assert_eq!(many.len(), 1_001);
        assert!(
            many[0].starts_with("s.toml:7: `period` has no unit"),
            "{}",
            many[0]
        );
        assert!(
            many[999].starts_with("s.toml:4003: `period` has no unit"),
            "{}",
            many[999]
        );
        // Nor is each unknown key looked for among all others.
        let keys: String = (0..MANY).map(|at| format!("cpu{at} = 1\n")).collect();
        let many = told(&format!("{keys}{head}"));
        assert_eq!(many.len(), 1_001);
    }
}
