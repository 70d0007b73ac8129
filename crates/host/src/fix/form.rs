//! The forms in which a file holds its value: most files hold nothing else, others list all values and mark one.

use serde::{Deserialize, Serialize};

use crate::cpus;
use crate::kernel;
use crate::root::{Root, Unreadable, shorten};

/// How a file's text holds its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// The text is the value.
    Plain,
    /// `always [madvise] never`
    Brackets,
    /// `none voluntary (full) lazy`
    Parentheses,
    /// A feature of the scheduler in the list of all, `NO_` before it where it is off.
    Feature,
    /// A hexadecimal mask of cpus, which the kernel writes with as many zeros as it likes.
    Mask,
}

impl Form {
    /// The value that a file has now; for [`Form::Feature`] that of the feature in `value`, on or off.
    ///
    /// # Errors
    /// If the file cannot be read, or has no value of this form.
    pub(super) fn read(self, root: &Root, path: &str, value: &str) -> Result<String, Unreadable> {
        let text = root.read(path)?;
        self.value(&text, value).ok_or_else(|| Unreadable {
            path: path.to_owned(),
            reason: format!("it holds {:?}, which is not understood", shorten(&text)),
        })
    }

    fn value(self, text: &str, value: &str) -> Option<String> {
        let marked = |from: char, to: char| {
            let mut words = text.split_whitespace();
            words.find_map(|word| word.strip_prefix(from)?.strip_suffix(to))
        };
        match self {
            Form::Plain => Some(text.to_owned()),
            Form::Brackets => marked('[', ']').map(str::to_owned),
            Form::Parentheses => marked('(', ')').map(str::to_owned),
            Form::Feature => {
                let name = value.strip_prefix("NO_").unwrap_or(value);
                let on = kernel::feature(text, name)?;
                Some(if on {
                    name.to_owned()
                } else {
                    format!("NO_{name}")
                })
            }
            Form::Mask => cpus::parse_mask(text).map(|cpus| cpus::format_mask(&cpus)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_value_is_found_in_the_text() {
        let of = |form: Form, text, value| form.value(text, value);
        assert_eq!(of(Form::Plain, "950000", "").unwrap(), "950000");
        let pages = "always [madvise] never";
        assert_eq!(of(Form::Brackets, pages, "never").unwrap(), "madvise");
        assert_eq!(of(Form::Brackets, "always", ""), None);
        let models = "none voluntary (full) lazy";
        assert_eq!(of(Form::Parentheses, models, "none").unwrap(), "full");
        let features = "PLACE_LAG NO_HRTICK NO_HRTICK_DL";
        for asked in ["HRTICK_DL", "NO_HRTICK_DL"] {
            let now = of(Form::Feature, features, asked);
            assert_eq!(now.as_deref(), Some("NO_HRTICK_DL"));
        }
        assert_eq!(of(Form::Feature, features, "TTWU_QUEUE"), None);
        assert_eq!(of(Form::Mask, "0000,00000003", "").unwrap(), "3");
        assert_eq!(of(Form::Mask, "many", ""), None);
    }
}
