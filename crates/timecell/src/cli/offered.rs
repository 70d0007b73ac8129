//! Option values that help lists and shells complete, taken from lists in the crates below. A parser may accept more than these,
//! or have its own error text, as for engines.

use std::ffi::OsStr;
use std::str::FromStr;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Arg, Command};
use model::EngineKind;
use record::import::{Described, Format};

/// Parses as `T` does, and offers values for help and completion.
#[derive(Debug, Clone)]
pub struct Offered<T> {
    values: fn() -> Vec<PossibleValue>,
    of: std::marker::PhantomData<fn() -> T>,
}

impl<T> Offered<T> {
    /// Offers these values.
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

/// The engines whose cells are measured.
pub fn engines() -> Vec<PossibleValue> {
    let all = EngineKind::OF_BENCH.iter();
    all.map(|engine| PossibleValue::new(engine.name()).help(engine.summary()))
        .collect()
}

/// Accepts these formats only, by their names.
pub fn format<E: Described + Sync>(
    all: impl Iterator<Item = Format<E>>,
) -> impl TypedValueParser<Value = Format<E>> {
    let values: Vec<PossibleValue> = all
        .map(|format| PossibleValue::new(format.name()).help(format.files()))
        .collect();
    PossibleValuesParser::new(values)
        .map(|name| Format::named(&name).expect("the parser lets only these pass"))
}
