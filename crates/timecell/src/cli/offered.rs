//! Values that help lists and a shell completes: those of lists in crates below, and names where others are taken too, such as engines with their own error text.

use std::ffi::OsStr;
use std::str::FromStr;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Arg, Command};
use model::EngineKind;
use record::import::{Described, Format};

/// Parses as `T` does, and offers values.
#[derive(Debug, Clone)]
pub struct Offered<T> {
    values: fn() -> Vec<PossibleValue>,
    of: std::marker::PhantomData<fn() -> T>,
}

impl<T> Offered<T> {
    /// Offers these.
    pub const fn of(values: fn() -> Vec<PossibleValue>) -> Offered<T> {
        Offered {
            values,
            of: std::marker::PhantomData,
        }
    }
}

impl<T> TypedValueParser for Offered<T>
where
    T: FromStr + Clone + Send + Sync + 'static,
    T::Err: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Value = T;

    fn parse_ref(
        &self,
        command: &Command,
        arg: Option<&Arg>,
        value: &OsStr,
    ) -> Result<T, clap::Error> {
        let parse = |text: &str| text.parse::<T>();
        parse.parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new((self.values)().into_iter()))
    }
}

/// The engines.
pub fn engines() -> Vec<PossibleValue> {
    let all = EngineKind::ALL.into_iter();
    all.map(|engine| PossibleValue::new(engine.name()).help(engine.summary()))
        .collect()
}

/// Formats by their names, and none but these.
pub fn format<E: Described + Sync>(
    all: impl Iterator<Item = Format<E>>,
) -> impl TypedValueParser<Value = Format<E>> {
    let values: Vec<PossibleValue> = all
        .map(|format| PossibleValue::new(format.name()).help(format.files()))
        .collect();
    PossibleValuesParser::new(values)
        .map(|name| Format::named(&name).expect("the parser lets only these pass"))
}
