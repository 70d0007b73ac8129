//! Which counters of the machine a run keeps beside its jobs.

use toml::de::DeValue;

use crate::InputError;
use crate::reader::Table;

/// How cells are counted while they are measured; what is counted is in `host::counters`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Counters {
    /// Not at all.
    #[default]
    None,
    /// From outside, in windows of 10 ms; nothing is added to the measuring loop.
    Windows,
    /// By the measuring thread itself once for each activation, where one reading takes at most
    /// [`Counters::CHEAP_SHARE`] of the period; else in windows.
    WhereCheap,
    /// By the measuring thread itself once for each activation, whatever it costs.
    Activations,
}

impl Counters {
    /// A reading is cheap that takes at most one part in so many of the period: one in a hundred.
    pub const CHEAP_SHARE: u64 = 100;

    /// Whether anything is counted.
    pub fn any(self) -> bool {
        self != Counters::None
    }

    /// The value of the key `counters`.
    pub(crate) fn of(top: &Table<'_>) -> Result<Counters, InputError> {
        let wanted = "true, false, \"window\" or \"activation\"";
        match top.item("counters").map(|item| item.get_ref()) {
            None | Some(DeValue::Boolean(false)) => Ok(Counters::None),
            Some(DeValue::Boolean(true)) => Ok(Counters::WhereCheap),
            Some(DeValue::String(text)) if text == "window" => Ok(Counters::Windows),
            Some(DeValue::String(text)) if text == "activation" => Ok(Counters::Activations),
            Some(DeValue::String(text)) => Err(top.fault(
                "counters",
                format!("`counters` is \"{text}\""),
                format!("it must be {wanted}"),
            )),
            Some(other) => Err(top.wrong_type("counters", other, wanted)),
        }
    }

    /// The value as it is written; `None` where the key is left out.
    pub(crate) fn written(self) -> Option<&'static str> {
        match self {
            Counters::None => None,
            Counters::Windows => Some("\"window\""),
            Counters::WhereCheap => Some("true"),
            Counters::Activations => Some("\"activation\""),
        }
    }
}
