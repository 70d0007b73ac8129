//! Changed files as lines: files whose names differ only in numbers, and that were changed alike, share a line.

use host::fix::undo::Change;

/// Width of the names of checks.
const NAME: usize = 24;

/// A line: the check, and the text.
pub(super) fn line(id: &str, text: &str, width: usize) -> String {
    let options = textwrap::Options::new(width)
        .subsequent_indent("        ")
        .break_words(false);
    let name = format!("{id:<NAME$}");
    textwrap::fill(&format!("{name}{text}"), options)
}

/// `PATH: FROM -> TO` for each change, in the order of the first of each group.
pub(super) fn changes(changes: &[Change], back: bool) -> Vec<(String, String)> {
    let values = |change: &Change| match back {
        true => format!("{} -> {}", change.set, change.was),
        false => format!("{} -> {}", change.was, change.set),
    };
    let each = changes.iter();
    alike(each.map(|change| (change, values(change))))
}

/// `PATH: TEXT` for each, with those alike merged.
pub(super) fn alike<'a>(each: impl Iterator<Item = (&'a Change, String)>) -> Vec<(String, String)> {
    let mut kinds: Vec<(&str, String, String, Vec<&str>)> = Vec::new();
    for (change, text) in each {
        let shape = shape(&change.path);
        let known = kinds
            .iter_mut()
            .find(|(id, known, says, _)| *id == change.id && *known == shape && *says == text);
        match known {
            Some((.., paths)) => paths.push(&change.path),
            None => kinds.push((&change.id, shape, text, vec![&change.path])),
        }
    }
    (kinds.into_iter())
        .map(|(id, shape, text, paths)| {
            let what = match paths.as_slice() {
                [path] => (*path).to_owned(),
                several => format!("{shape} ({} files)", several.len()),
            };
            (id.to_owned(), format!("{what}: {text}"))
        })
        .collect()
}

/// The path with `*` for each number.
fn shape(path: &str) -> String {
    let mut shape = String::with_capacity(path.len());
    for character in path.chars() {
        match character.is_ascii_digit() {
            true if shape.ends_with('*') => {}
            true => shape.push('*'),
            false => shape.push(character),
        }
    }
    shape
}

#[cfg(test)]
mod tests {
    use super::*;
    use host::fix::Form;

    #[test]
    fn files_that_were_changed_alike_are_one_line() {
        let change = |path: &str, was: &str| Change {
            id: "irq-affinity".to_owned(),
            path: path.to_owned(),
            form: Form::Plain,
            was: was.to_owned(),
            set: "0".to_owned(),
            earlier: None,
        };
        let all = [
            change("/proc/irq/9/smp_affinity_list", "0-1"),
            change("/proc/irq/24/smp_affinity_list", "0-1"),
            change("/proc/irq/25/smp_affinity_list", "1"),
        ];
        let texts = |back| changes(&all, back).into_iter().map(|(_, text)| text);
        let there: Vec<String> = texts(false).collect();
        assert_eq!(
            there,
            [
                "/proc/irq/*/smp_affinity_list (2 files): 0-1 -> 0",
                "/proc/irq/25/smp_affinity_list: 1 -> 0"
            ]
        );
        assert!(texts(true).next().unwrap().ends_with("0 -> 0-1"));
    }
}
