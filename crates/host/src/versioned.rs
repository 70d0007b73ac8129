//! JSON files with a version, `schema`, which is checked before anything else: a file of another version may have other keys.

use serde::Deserialize;
use serde::de::DeserializeOwned;

/// Why such a file cannot be used, a clause.
#[derive(Debug, thiserror::Error)]
pub enum Unusable {
    /// Of another version.
    #[error("it has version {found}, and this timecell knows version {known}")]
    Version {
        /// That of the file.
        found: u32,
        /// That which is asked for.
        known: u32,
    },
    /// Its contents are not those of such a file.
    #[error("{0}")]
    Malformed(#[from] serde_json::Error),
}

#[derive(Deserialize)]
struct Version {
    schema: u32,
}

/// The contents of a file of this version.
///
/// # Errors
/// [`Unusable`].
pub fn parse<T: DeserializeOwned>(bytes: &[u8], known: u32) -> Result<T, Unusable> {
    let Version { schema: found } = serde_json::from_slice(bytes)?;
    match found == known {
        true => Ok(serde_json::from_slice(bytes)?),
        false => Err(Unusable::Version { found, known }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Deserialize, Debug)]
    struct File {
        name: String,
    }

    #[test]
    fn another_version_is_told_even_where_its_keys_are_others() {
        let of = |text: &str| parse::<File>(text.as_bytes(), 1);
        assert_eq!(of(r#"{"schema": 1, "name": "a"}"#).unwrap().name, "a");
        let newer = of(r#"{"schema": 2, "label": "a"}"#).unwrap_err();
        assert_eq!(
            newer.to_string(),
            "it has version 2, and this timecell knows version 1"
        );
        for text in [r#"{"schema": 1}"#, r#"{"name": "a"}"#, "{", ""] {
            assert!(matches!(of(text), Err(Unusable::Malformed(_))), "{text}");
        }
    }
}
