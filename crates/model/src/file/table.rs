//! Tables as types: one declaration gives the struct, the shape, the reader and the writer.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::{Kind, Node, Shape, quoted};
use crate::{Bytes, Choice, Duration};

/// A value under a key of a table.
pub(crate) trait Field: Sized {
    /// The kind of a key of this type that declares no other.
    const KIND: Kind;

    /// The value of a key, or its default. `None`: the key is absent and has no default, or its value cannot be read, which
    /// the survey has reported.
    fn get(node: &Node<'_>, key: &str) -> Option<Self>;

    /// The value in place of one that cannot be read.
    fn unread() -> Self;

    /// The value of a key.
    fn read(node: &Node<'_>, key: &str) -> Self {
        Self::get(node, key).unwrap_or_else(Self::unread)
    }

    /// The items of a list, those that can be read.
    fn list(node: &Node<'_>, key: &str) -> Vec<Self>;

    /// The value as TOML in one line; `None`: the key is left out.
    fn text(&self) -> Option<String>;

    /// Writes the key with its value.
    fn write(&self, key: &str, out: &mut Writer) {
        if let Some(text) = self.text() {
            out.line(key, &text);
        }
    }

    /// Writes a list; an empty one is left out.
    fn write_all(items: &[Self], key: &str, out: &mut Writer) {
        let texts: Vec<String> = items.iter().filter_map(Self::text).collect();
        if !texts.is_empty() {
            out.line(key, &format!("[{}]", texts.join(", ")));
        }
    }
}

/// A table that [`table!`] declares.
pub(crate) trait Table: Field {
    /// The declaration of its keys.
    const SHAPE: &'static Shape;

    /// Reads the table.
    fn of(node: &Node<'_>) -> Self;

    /// Writes its keys.
    fn keys(&self, out: &mut Writer);
}

/// Types of single values, each with its kind, its getter, its list, the value in place of an unreadable one, and its text.
macro_rules! fields {
    ($($type:ty $(where $t:ident: $bound:ident)?: $kind:expr, $get:expr, $list:expr, $unread:expr, $text:expr;)*) => {$(
        impl $(<$t: $bound>)? Field for $type {
            const KIND: Kind = $kind;

            fn get(node: &Node<'_>, key: &str) -> Option<$type> {
                $get(node, key)
            }

            fn unread() -> $type {
                $unread
            }

            fn list(node: &Node<'_>, key: &str) -> Vec<$type> {
                $list(node, key)
            }

            fn text(&self) -> Option<String> {
                $text(self)
            }
        }
    )*};
}

fields! {
    String: Kind::Text, Node::some_text, Node::texts, String::new(), |text: &String| Some(quoted(text));
    PathBuf: Kind::HostPath, Node::path, none, PathBuf::new(), |path: &PathBuf| Some(quoted(&path.to_string_lossy()));
    Duration: Kind::Time { least_ns: 0 }, Node::time, none, Duration::from_ns(0), quote;
    Bytes: Kind::Size { least: 0 }, Node::size, none, Bytes::new(0), quote;
    u32: Kind::Integer { least: 0, most: u32::MAX as i64 }, Node::count, Node::counts, 1, plain;
    u8: Kind::Integer { least: 0, most: u8::MAX as i64 }, octet, none, 1, plain;
    u64: Kind::Integer { least: 0, most: (1 << 52) - 1 }, address, none, 0, |value: &u64| Some(format!("{value:#x}"));
    bool: Kind::Boolean, |node: &Node<'_>, key| Some(node.boolean(key)), none, false, plain;
    BTreeMap<String, String>: Kind::Environment, |node: &Node<'_>, key| Some(node.environment(key)), none, BTreeMap::new(), environment;
    T where T: Choice: Kind::Choice(T::WORDS), named, none, T::VALUES[0], |value: &T| Some(quoted(value.word()));
}

fn none<T>(_: &Node<'_>, _: &str) -> Vec<T> {
    Vec::new()
}

fn octet(node: &Node<'_>, key: &str) -> Option<u8> {
    u8::try_from(node.integer(key)?).ok()
}

/// A number that is an address.
fn address(node: &Node<'_>, key: &str) -> Option<u64> {
    u64::try_from(node.integer(key)?).ok()
}

fn named<T: Choice>(node: &Node<'_>, key: &str) -> Option<T> {
    T::named(&node.some_text(key)?)
}

fn plain(value: &impl ToString) -> Option<String> {
    Some(value.to_string())
}

fn quote(value: &impl ToString) -> Option<String> {
    Some(quoted(&value.to_string()))
}

fn environment(map: &BTreeMap<String, String>) -> Option<String> {
    (!map.is_empty()).then(|| toml::Value::from(map.clone()).to_string())
}

/// A key that may be left out.
impl<T: Field> Field for Option<T> {
    const KIND: Kind = T::KIND;

    fn get(node: &Node<'_>, key: &str) -> Option<Option<T>> {
        Some(T::get(node, key))
    }

    fn unread() -> Option<T> {
        None
    }

    fn list(_: &Node<'_>, _: &str) -> Vec<Option<T>> {
        Vec::new()
    }

    fn text(&self) -> Option<String> {
        self.as_ref()?.text()
    }

    fn write(&self, key: &str, out: &mut Writer) {
        if let Some(value) = self {
            value.write(key, out);
        }
    }
}

/// A list, whose kind has bounds that its key declares.
impl<T: Field> Field for Vec<T> {
    const KIND: Kind = T::KIND;

    fn get(node: &Node<'_>, key: &str) -> Option<Vec<T>> {
        Some(T::list(node, key))
    }

    fn unread() -> Vec<T> {
        Vec::new()
    }

    fn list(_: &Node<'_>, _: &str) -> Vec<Vec<T>> {
        Vec::new()
    }

    fn text(&self) -> Option<String> {
        None
    }

    fn write(&self, key: &str, out: &mut Writer) {
        T::write_all(self, key, out);
    }
}

/// The TOML of a table: its lines, and the tables below it.
#[derive(Default)]
pub(crate) struct Writer {
    path: String,
    lines: Vec<String>,
    below: String,
}

impl Writer {
    /// The table with all that is below it, as a file.
    pub fn file(table: &impl Table) -> String {
        let mut out = Writer::default();
        table.keys(&mut out);
        out.lines.join("\n") + "\n" + &out.below
    }

    /// The table in one line.
    pub fn inline(table: &impl Table) -> String {
        let mut out = Writer::default();
        table.keys(&mut out);
        format!("{{ {} }}", out.lines.join(", "))
    }

    /// Adds a line.
    pub fn line(&mut self, key: &str, text: &str) {
        self.lines.push(format!("{key} = {text}"));
    }

    /// Adds a table: below this one if it is named by its head, else in one line.
    pub fn table<T: Table>(&mut self, key: &str, table: &T) {
        match T::SHAPE.title.starts_with('[') {
            true => self.section(["[", "]"], key, table),
            false => self.line(key, &Writer::inline(table)),
        }
    }

    /// Adds a table below this one, under a head such as `[[cell.task]]`.
    pub fn section(&mut self, brackets: [&str; 2], key: &str, table: &impl Table) {
        let dot = if self.path.is_empty() { "" } else { "." };
        let path = format!("{}{dot}{key}", self.path);
        let head = format!("\n{}{path}{}\n", brackets[0], brackets[1]);
        let mut out = Writer {
            path,
            ..Writer::default()
        };
        table.keys(&mut out);
        self.below += &(head + &out.lines.join("\n") + "\n" + &out.below);
    }
}

/// A list of tables.
pub(crate) const fn tables<T: Table>(most: usize) -> Kind {
    Kind::Tables { of: T::SHAPE, most }
}

/// Declares a table of a file, from which follow the struct, the [`Shape`], the reader and the writer:
///
/// ```text
/// table! {
///     /// The schema's description of the table.
///     ///
///     /// More for the documentation of the struct.
///     pub struct NAME(Copy): "name in the schema", "name in messages" {
///         /// The meaning of the key, one clause.
///         field: Type = kind, Default "value";       // without `= kind`, that of the type
///         /// A key of another name than the field.
///         field as "key": Type, Required "example";
///         /// A key that is left out if the method `condition` returns true.
///         field: Type, Default "value", unless condition;
///         /// A key without a field of its own.
///         "key" = kind, Without "default in words";
///         /// A field that is read by `module::read` and written by `module::write`, from any keys.
///         field: Type, by module;
///     }
/// }
/// ```
macro_rules! table {
    (
        #[doc = $doc:literal] $(#[doc = $more:literal])*
        pub struct $type:ident $(($($derive:path),*))?: $name:literal, $title:literal { $($entries:tt)* }
    ) => {
        $crate::file::table! {
            @ [#[doc = $doc] $(#[doc = $more])* #[derive(Debug, Clone, PartialEq, Eq $($(, $derive)*)?)]]
            $type, $name, $title, $doc, node, this, out, [] [] [] []; $($entries)*
        }
    };
    (
        @ $head:tt $type:ident, $name:literal, $title:literal, $doc:literal, $node:ident, $this:ident, $out:ident,
        [$($field:tt)*] $keys:tt [$($read:tt)*] [$($write:tt)*];
        $(#[doc = $of:literal])+ $key:ident: $t:ty, by $by:ident; $($rest:tt)*
    ) => {
        $crate::file::table! {
            @ $head $type, $name, $title, $doc, $node, $this, $out,
            [$($field)* $(#[doc = $of])+ pub $key: $t,] $keys
            [$($read)* $key: $by::read($node),] [$($write)* $by::write($this, $out);]; $($rest)*
        }
    };
    (
        @ $head:tt $type:ident, $name:literal, $title:literal, $doc:literal, $node:ident, $this:ident, $out:ident,
        $field:tt [$($keys:tt)*] $read:tt $write:tt;
        #[doc = $of:literal] $key:literal = $kind:expr, $need:ident $value:literal; $($rest:tt)*
    ) => {
        $crate::file::table! {
            @ $head $type, $name, $title, $doc, $node, $this, $out, $field
            [$($keys)* $crate::file::Key {
                name: $key, kind: $kind, need: $crate::file::Need::$need($value), doc: $of.trim_ascii(),
            },]
            $read $write; $($rest)*
        }
    };
    (
        @ $head:tt $type:ident, $name:literal, $title:literal, $doc:literal, $node:ident, $this:ident, $out:ident,
        [$($field:tt)*] [$($keys:tt)*] [$($read:tt)*] [$($write:tt)*];
        #[doc = $of:literal] $(#[doc = $more:literal])*
        $key:ident $(as $as:literal)?: $t:ty $(= $kind:expr)?, $need:ident $value:literal
            $(, unless $unless:ident)?; $($rest:tt)*
    ) => {
        $crate::file::table! {
            @ $head $type, $name, $title, $doc, $node, $this, $out,
            [$($field)* #[doc = $of] $(#[doc = $more])* #[doc = ""] #[doc = concat!(stringify!($need), ": ", $value)] pub $key: $t,]
            [$($keys)* $crate::file::Key {
                name: $crate::file::table!(@first $($as)? (stringify!($key))),
                kind: $crate::file::table!(@first $($kind)? (<$t as $crate::file::Field>::KIND)),
                need: $crate::file::Need::$need($value),
                doc: $of.trim_ascii(),
            },]
            [$($read)* $key: <$t as $crate::file::Field>::read(
                $node, $crate::file::table!(@first $($as)? (stringify!($key)))
            ),]
            [$($write)* if true $(&& !$this.$unless())? {
                $crate::file::Field::write(&$this.$key, $crate::file::table!(@first $($as)? (stringify!($key))), $out);
            }];
            $($rest)*
        }
    };
    (
        @ [$($head:tt)*] $type:ident, $name:literal, $title:literal, $doc:literal, $node:ident, $this:ident, $out:ident,
        [$($field:tt)*] [$($keys:tt)*] [$($read:tt)*] [$($write:tt)*];
    ) => {
        $($head)* pub struct $type { $($field)* }

        impl $crate::file::Table for $type {
            const SHAPE: &'static $crate::file::Shape = &$crate::file::Shape {
                title: $title, name: $name, doc: $doc.trim_ascii(), choice: false, keys: &[$($keys)*],
            };

            fn of($node: &$crate::file::Node<'_>) -> $type {
                $type { $($read)* }
            }

            fn keys(&self, $out: &mut $crate::file::Writer) {
                let $this = self;
                $($write)*
            }
        }

        impl $crate::file::Field for $type {
            const KIND: $crate::file::Kind = $crate::file::Kind::Table(<$type as $crate::file::Table>::SHAPE);

            fn get(node: &$crate::file::Node<'_>, key: &str) -> Option<$type> {
                node.table(key).as_ref().map(<$type as $crate::file::Table>::of)
            }

            fn unread() -> $type {
                <$type as $crate::file::Table>::of(&$crate::file::Node::empty(<$type as $crate::file::Table>::SHAPE))
            }

            fn list(node: &$crate::file::Node<'_>, key: &str) -> Vec<$type> {
                node.tables(key).iter().map(<$type as $crate::file::Table>::of).collect()
            }

            fn text(&self) -> Option<String> {
                Some($crate::file::Writer::inline(self))
            }

            fn write(&self, key: &str, out: &mut $crate::file::Writer) {
                out.table(key, self);
            }

            fn write_all(items: &[$type], key: &str, out: &mut $crate::file::Writer) {
                items.iter().for_each(|item| out.section(["[[", "]]"], key, item));
            }
        }
    };
    (@first $given:tt $($or:tt)*) => { $given };
}
pub(crate) use table;
