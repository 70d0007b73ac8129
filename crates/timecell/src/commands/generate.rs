//! Generated texts: completions and man pages from the definition of the command line, schemas of files, and the client's
//! header.

use std::io::{self, Write as _};
use std::path::Path;

use clap::Command;
use clap_mangen::roff::{Roff, roman};
use host::writer;

use crate::cli::{self, Completions, FileKind, Man};
use crate::exit::{CommandError, Ended};
use crate::out;

/// Prints a completion script.
pub fn completions(options: &Completions) -> Result<Ended, CommandError> {
    let mut script = Vec::new();
    clap_complete::generate(options.shell, &mut cli::command(), "timecell", &mut script);
    out::print(&String::from_utf8_lossy(&script));
    Ok(Ended::Fine)
}

/// Prints the JSON Schema of a kind of file.
pub fn schema(of: FileKind) -> Result<Ended, CommandError> {
    let schema = match of {
        FileKind::Experiment => model::Experiment::schema(),
        FileKind::Taskset => model::taskset::TaskSet::schema(),
        FileKind::Mission => model::mission::schema(),
        FileKind::Board => model::Board::schema(),
    };
    out::print(&format!("{schema:#}"));
    Ok(Ended::Fine)
}

/// Prints the header that C programs include to use the client, in the version that this binary speaks.
pub fn header(is_inmate: bool) -> Result<Ended, CommandError> {
    let header = match is_inmate {
        true => timecell_client::INMATE_HEADER,
        false => timecell_client::C_HEADER,
    };
    out::print(header.trim_end());
    Ok(Ended::Fine)
}

/// Writes one man page for timecell and one for each subcommand.
pub fn man(options: &Man) -> Result<Ended, CommandError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| CommandError::File {
            path,
            doing: "write the man pages",
            source,
        }
    };
    let mut all = cli::command().disable_help_subcommand(true);
    all.build();
    writer::create_dir_all(&options.dir)
        .and_then(|()| write_pages(&all, &options.dir))
        .map_err(failed(&options.dir))?;
    out::print(&format!("man pages are in {}", options.dir.display()));
    Ok(Ended::Fine)
}

/// Writes the man page of a command and those of its subcommands.
fn write_pages(command: &Command, dir: &Path) -> io::Result<()> {
    let name = command.get_display_name().unwrap_or(command.get_name());
    let page = page(command)?;
    writer::create(&dir.join(format!("{name}.1")))?.write_all(&page)?;
    let mut shown = command.get_subcommands().filter(|of| !of.is_hide_set());
    shown.try_for_each(|of| write_pages(of, dir))
}

/// The man page of a command.
fn page(command: &Command) -> io::Result<Vec<u8>> {
    let man = clap_mangen::Man::new(command.clone());
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if command.get_subcommands().any(|of| !of.is_hide_set()) {
        man.render_subcommands_section(&mut page)?;
    }
    closing(command).to_writer(&mut page)?;
    Ok(page)
}

/// The sections of the paragraphs around a command's help: examples, notes, and the exit status, by default that of all verbs.
fn closing(command: &Command) -> Roff {
    let after = command.get_after_long_help().or(command.get_after_help());
    let before = (command.get_before_long_help()).or(command.get_before_help());
    let texts = [before, after].into_iter().flatten();
    let text = texts.map(|text| format!("{text}\n\n")).collect::<String>();
    let (examples, others): (Vec<&str>, _) =
        (text.split_terminator("\n\n")).partition(|part| part.starts_with("Examples:\n"));
    let (mut codes, notes): (Vec<&str>, Vec<&str>) = others
        .into_iter()
        .partition(|part| part.starts_with("Exit codes"));
    if codes.is_empty() {
        codes.push(cli::EXIT_CODES);
    }
    let mut roff = Roff::new();
    if !examples.is_empty() {
        roff.control("SH", ["EXAMPLES"]).control("nf", []);
        let lines = examples.iter().flat_map(|part| part.lines().skip(1));
        lines.for_each(|line| {
            roff.text([roman(line)]);
        });
        roff.control("fi", []);
    }
    for (title, parts) in [("NOTES", notes), ("EXIT STATUS", codes)] {
        for (number, part) in parts.iter().enumerate() {
            match number {
                0 => roff.control("SH", [title]),
                _ => roff.control("PP", []),
            };
            roff.text([roman(*part)]);
        }
    }
    roff
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks a command and its subcommands.
    fn check(command: &Command) {
        let page = String::from_utf8(page(command).unwrap()).unwrap();
        for section in ["NAME", "SYNOPSIS", "EXAMPLES", "\"EXIT STATUS\""] {
            let heading = format!("\n.SH {section}\n");
            assert_eq!(page.matches(&heading).count(), 1, "{section}: {page}");
        }
        command.get_subcommands().for_each(check);
    }

    #[test]
    fn every_man_page_has_examples_and_an_exit_status() {
        let mut all = cli::command().disable_help_subcommand(true);
        all.build();
        check(&all);
    }
}
