//! Places in a file: paths of keys and items.

use std::fmt;

/// A place in a file, as a JSON pointer (RFC 6901): `/cell/2/task/0/wcet` is the `wcet` of the first task of the third
/// cell. With it a fault found long after reading still names its line.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Place(String);

impl Place {
    /// The top level.
    pub fn top() -> Place {
        Place::default()
    }

    /// The cell at this index, from 0.
    pub fn cell(index: usize) -> Place {
        Place::top().key("cell").item(index)
    }

    /// The task of this cell at this index, from 0.
    #[must_use]
    pub fn task(&self, index: usize) -> Place {
        self.key("task").item(index)
    }

    /// A key of this table.
    #[must_use]
    pub fn key(&self, key: &str) -> Place {
        if key.contains(['~', '/']) {
            return self.child(&key.replace('~', "~0").replace('/', "~1"));
        }
        self.child(key)
    }

    /// An item of this list, from 0.
    #[must_use]
    pub fn item(&self, index: usize) -> Place {
        self.child(&index.to_string())
    }

    /// One allocation: a file has some thousand places.
    fn child(&self, name: &str) -> Place {
        let mut place = String::with_capacity(self.0.len() + 1 + name.len());
        place.push_str(&self.0);
        place.push('/');
        place.push_str(name);
        Place(place)
    }

    /// The keys and indices that lead to it from the top.
    pub(crate) fn names(&self) -> impl Iterator<Item = String> {
        let names = self.0.split('/').skip(1);
        names.map(|name| name.replace("~1", "/").replace("~0", "~"))
    }

    /// Whether a place is this one or below it.
    pub(crate) fn holds(&self, place: &Place) -> bool {
        let below = place.0.strip_prefix(&self.0);
        below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    /// The table or list around it; `None` at the top.
    pub fn parent(&self) -> Option<Place> {
        let (parent, _) = self.0.rsplit_once('/')?;
        Some(Place(parent.to_owned()))
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_a_json_pointer() {
        let place = Place::cell(2).task(0).key("wcet");
        assert_eq!(place.to_string(), "/cell/2/task/0/wcet");
        assert_eq!(place.parent(), Some(Place::cell(2).task(0)));
        assert_eq!(Place::top().parent(), None);
        let odd = Place::top().key("a/b~c");
        assert_eq!(odd.to_string(), "/a~1b~0c");
        assert_eq!(odd.names().collect::<Vec<_>>(), ["a/b~c"]);
        assert!(Place::cell(2).holds(&place) && Place::top().holds(&place));
        assert!(
            !Place::cell(0).holds(&Place::cell(10).key("x"))
                && !Place::cell(2).holds(&Place::cell(20))
        );
    }
}
