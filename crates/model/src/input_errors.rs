//! All faults of one file.

use std::fmt;

use crate::InputError;

/// Every fault of one file, in the order of its lines. There is at least one.
///
/// Prints one sentence per line. Maps to exit code 2, like a single [`InputError`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputErrors(Vec<InputError>);

impl InputErrors {
    /// The faults, sorted by line; `None` if there are none.
    pub fn of(mut faults: Vec<InputError>) -> Option<InputErrors> {
        faults.sort_by_key(|fault| fault.line);
        faults.dedup();
        (!faults.is_empty()).then_some(InputErrors(faults))
    }

    /// The same faults, each passed through a function.
    #[must_use]
    pub fn map(self, put: impl FnMut(InputError) -> InputError) -> InputErrors {
        InputErrors(self.0.into_iter().map(put).collect())
    }

    /// The faults, in the order of their lines.
    pub fn iter(&self) -> std::slice::Iter<'_, InputError> {
        self.0.iter()
    }
}

impl From<InputError> for InputErrors {
    fn from(fault: InputError) -> InputErrors {
        InputErrors(vec![fault])
    }
}

impl<'a> IntoIterator for &'a InputErrors {
    type Item = &'a InputError;
    type IntoIter = std::slice::Iter<'a, InputError>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl fmt::Display for InputErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, fault) in self.iter().enumerate() {
            if place > 0 {
                f.write_str("\n")?;
            }
            fault.fmt(f)?;
        }
        Ok(())
    }
}

impl std::error::Error for InputErrors {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_come_by_line_and_once() {
        let fault = |line, what: &str| InputError::new("m.toml", what, "").at(line);
        let faults = InputErrors::of(vec![fault(9, "b"), fault(2, "a"), fault(9, "b")]).unwrap();
        assert_eq!(faults.to_string(), "m.toml:2: a\nm.toml:9: b");
        assert_eq!(InputErrors::of(Vec::new()), None);
    }
}
