//! Enums of names, as files, options and tables have them.

/// An enum whose variants are names in files, options or tables.
pub trait Choice: Copy + PartialEq + 'static {
    /// All values, in the order in which they are listed.
    const VALUES: &'static [Self];
    /// Their names, in the same order.
    const WORDS: &'static [&'static str];

    /// The value of this name.
    fn named(name: &str) -> Option<Self> {
        let place = Self::WORDS.iter().position(|word| *word == name)?;
        Self::VALUES.get(place).copied()
    }

    /// The name of the value.
    fn word(self) -> &'static str {
        let place = Self::VALUES.iter().position(|value| *value == self);
        place.map_or("", |place| Self::WORDS[place])
    }
}

/// Declares an enum of names: each variant with its name. The enum has `ALL` (its values in this order), `NAMES` (pairs of name
/// and value) and a method that returns the name: `name`, or another one that is given after the enum's own name.
///
/// ```
/// use timecell_model::{Choice, choice};
///
/// choice! {
///     /// A color.
///     pub enum Color {
///         /// Like the sky.
///         Blue = "blue",
///         /// Like grass.
///         Green = "green",
///     }
/// }
/// assert_eq!(Color::Green.name(), "green");
/// assert_eq!(Color::named("blue"), Some(Color::Blue));
/// assert_eq!(Color::ALL.len(), 2);
/// ```
#[macro_export]
macro_rules! choice {
    ($(#[$meta:meta])* $vis:vis enum $type:ident { $($variants:tt)* }) => {
        $crate::choice! { $(#[$meta])* $vis enum $type: name { $($variants)* } }
    };
    (
        $(#[$meta:meta])* $vis:vis enum $type:ident: $method:ident {
            $($(#[$of:meta])* $variant:ident = $name:literal,)*
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        $vis enum $type { $($(#[$of])* $variant),* }

        #[allow(dead_code)]
        impl $type {
            /// All values, in the order in which they are listed.
            $vis const ALL: [$type; [$($name),*].len()] = [$($type::$variant),*];
            /// All values with their names, in the same order.
            $vis const NAMES: [(&'static str, $type); [$($name),*].len()] =
                [$(($name, $type::$variant)),*];

            /// The name of the value.
            $vis const fn $method(self) -> &'static str {
                match self { $($type::$variant => $name),* }
            }
        }

        impl $crate::Choice for $type {
            const VALUES: &'static [$type] = &$type::ALL;
            const WORDS: &'static [&'static str] = &[$($name),*];
        }
    };
}
