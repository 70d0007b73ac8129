//! Values that a shell may complete, where others are taken too: scenarios beside files, engines with their own error text.

use std::ffi::OsStr;
use std::str::FromStr;

use clap::builder::{PossibleValue, TypedValueParser};
use clap::{Arg, Command};

/// Parses as `T` does, and offers names.
#[derive(Debug, Clone)]
pub struct Offered<T> {
    names: fn() -> Vec<&'static str>,
    of: std::marker::PhantomData<fn() -> T>,
}

impl<T> Offered<T> {
    /// Offers these names.
    pub const fn of(names: fn() -> Vec<&'static str>) -> Offered<T> {
        Offered {
            names,
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
        Some(Box::new((self.names)().into_iter().map(PossibleValue::new)))
    }
}

/// The scenarios of `bench`.
pub fn scenarios() -> Vec<&'static str> {
    bench::scenario::names()
}

/// The engines.
pub fn engines() -> Vec<&'static str> {
    model::EngineKind::ALL.map(model::EngineKind::name).to_vec()
}
