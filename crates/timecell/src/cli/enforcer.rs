//! Options that name enforcers. Names and help come from each enforcer's description.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use model::Enforcer;

/// The enforcer that holds the cells of a study; `None` is nothing.
pub type Reserve = Option<Enforcer>;

/// Parses the name of one of these enforcers.
pub fn one_of(of: &'static [Enforcer]) -> impl TypedValueParser<Value = Enforcer> {
    // The others of EVL are refused for their reason.
    let is_other = |each: &&Enforcer| each.is_out_of_band() && !of.contains(each);
    let others = Enforcer::ALL.iter().filter(is_other);
    let values = of.iter().chain(others).map(|each| {
        let value = PossibleValue::new(each.name()).help(each.summary());
        value.hide(!of.contains(each))
    });
    PossibleValuesParser::new(values).try_map(|name| {
        Enforcer::named(&name, of).ok_or("it holds threads out of band, which are in cells with `rights.evl` of a mission's file")
    })
}

/// Parses one of [`model::task_reserves`].
pub fn reserve() -> impl TypedValueParser<Value = Reserve> {
    let values = model::task_reserves().into_iter().map(|(name, held)| {
        PossibleValue::new(name).help(held.map_or("The class alone", Enforcer::summary))
    });
    PossibleValuesParser::new(values).map(|name| Enforcer::named(&name, Enforcer::ALL))
}
