//! Measures how long best-effort cells can keep a critical task from its cpu by work that the kernel does on nobody's account.
//!
//! A table says for each attack the worst delay of a task of the highest
//! priority in the best, the median and the worst turn, in ms: alone; beside the attack on the same cpu with its
//! limits lifted; with the limits that cells have by default; and with the attack on other cpus, where best-effort cells of a
//! mission are by default. The four take turns of two seconds within one mission, so that other activity on the machine affects
//! all of them alike; if there is much of it, the best turn shows the attack by itself.

pub mod attacks;
pub mod critical;
mod processes;
mod turns;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use clap::Args;
use clap::builder::PossibleValuesParser;

use attacks::ATTACKS;
use turns::{TURNS, Turn};

use super::{Failure, built};

/// How late is a critical task beside storms of interrupts and of work that the kernel does on nobody's account?
#[derive(Args)]
pub struct Options {
    /// Turns of each kind.
    #[arg(long, default_value_t = 5)]
    rounds: u64,
    /// The critical cpu.
    #[arg(long, default_value_t = 1)]
    cpu: u64,
    /// This timecell instead of the release build.
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
    /// These attacks instead of all.
    #[arg(value_parser = PossibleValuesParser::new(ATTACKS.iter().map(|attack| attack.name)))]
    attacks: Vec<String>,
}

/// Measures the attacks and prints the table.
///
/// # Errors
///
/// If the mission cannot be started or its critical cell says nothing.
pub fn run(options: &Options) -> Result<(), Failure> {
    let is_asked = |name: &str| {
        options.attacks.is_empty() || options.attacks.iter().any(|asked| asked == name)
    };
    let asked = Asked {
        rounds: options.rounds,
        cpu: options.cpu,
        timecell: match &options.binary {
            Some(path) => path.canonicalize()?,
            None => built::timecell()?,
        },
        attacks: ATTACKS
            .iter()
            .filter(|attack| is_asked(attack.name))
            .collect(),
    };
    Ok(asked.measure()?)
}

/// The measurement to make.
struct Asked {
    rounds: u64,
    cpu: u64,
    timecell: PathBuf,
    attacks: Vec<&'static attacks::Attack>,
}

impl Asked {
    fn measure(&self) -> Result<(), String> {
        let heads: Vec<&str> = TURNS.iter().map(|turn| turn.name).collect();
        println!("| attack | {} |", heads.join(" | "));
        println!("|---|{}", "---|".repeat(TURNS.len()));
        for attack in &self.attacks {
            let worst = self.one(attack)?;
            let ms = |ns: u64| format!("{:.2}", ns as f64 / 1e6);
            let cells: Vec<String> = (worst.iter())
                .map(|turns| {
                    let [least, median, worst] =
                        [0, turns.len() / 2, turns.len() - 1].map(|at| ms(turns[at]));
                    format!("{least} / {median} / {worst}")
                })
                .collect();
            println!("| {} | {} |", attack.what, cells.join(" | "));
        }
        Ok(())
    }

    /// The worst delay in each turn of each kind, ns, ascending.
    fn one(&self, attack: &attacks::Attack) -> Result<Vec<Vec<u64>>, String> {
        let failed = |error: std::io::Error| error.to_string();
        let dir = std::env::temp_dir().join(format!("storms-{}", std::process::id()));
        fs::create_dir_all(dir.join("room")).map_err(failed)?;
        fs::set_permissions(dir.join("room"), fs::Permissions::from_mode(0o777)).map_err(failed)?;
        let result = self.mission(attack, &dir);
        // Files that cannot be removed are in the temporary directory.
        let _ = fs::remove_dir_all(&dir);
        result
    }

    fn mission(&self, attack: &attacks::Attack, dir: &Path) -> Result<Vec<Vec<u64>>, String> {
        let own = std::env::current_exe().map_err(|error| error.to_string())?;
        let turns = (self.rounds + 1 + attack.warm_up) * TURNS.len() as u64;
        let critical = format!(
            "schema = 1\nname = \"storms-{pid}\"\ncpus = [{cpu}]\n\
             [[cell]]\nname = \"critical\"\nimage = {{ binary = \"{own}\" }}\nargs = [\"storms-critical\", \"{turns}\"]\n\
             class = \"fifo\"\npriorities = {{ lowest = 90, highest = 90 }}\n\
             reservation = {{ budget = \"16ms\", period = \"40ms\" }}\nrestart = {{ policy = \"never\" }}\n",
            pid = std::process::id(),
            cpu = self.cpu,
            own = own.display(),
        );
        let attackers = TURNS.iter().enumerate().filter_map(|(at, turn)| {
            let Turn { cell, rights, .. } = turn;
            let cpus = if turn.apart { String::new() } else { format!("cpus = [{}]\n", self.cpu) };
            cell.map(|cell| format!(
                "[[cell]]\nname = \"{cell}\"\nimage = {{ binary = \"{own}\" }}\nclass = \"other\"\n{cpus}\
                 args = [\"storms-attack\", \"{name}\", \"{at}\", \"{turns}\"]\nrestart = {{ policy = \"never\" }}\n\
                 [cell.rights]\nmemory = \"{memory}\"\n{rights}\
                 mounts = [{{ source = \"{room}\", target = \"/room\", writable = true }}]\n",
                own = own.display(),
                name = attack.name,
                memory = attack.memory,
                room = dir.join("room").display(),
            ))
        });
        let text = std::iter::once(critical.clone())
            .chain(attackers)
            .collect::<String>();
        fs::write(dir.join("mission.toml"), text).map_err(|error| error.to_string())?;
        let said = Command::new(&self.timecell)
            .args(["up", "mission.toml", "--dir", "state"])
            .current_dir(dir)
            .stdin(Stdio::null())
            .output()
            .map_err(|error| format!("{}: {error}", self.timecell.display()))?;
        let output =
            fs::read_to_string(dir.join("state/cells/critical/output")).unwrap_or_default();
        let worst: Vec<Vec<u64>> = (output.lines())
            .filter_map(|line| line.strip_prefix("worst "))
            .map(|line| {
                let turns = line.split_whitespace().filter_map(|ns| ns.parse().ok());
                let turns = turns.skip(attack.warm_up as usize);
                let mut turns: Vec<u64> = turns.collect();
                turns.sort_unstable();
                turns
            })
            .filter(|turns| !turns.is_empty())
            .collect();
        if worst.len() != TURNS.len() {
            return Err(format!(
                "the critical cell said nothing; timecell said:\n{}{}",
                String::from_utf8_lossy(&said.stdout),
                String::from_utf8_lossy(&said.stderr)
            ));
        }
        // An attack that has ended is none.
        for line in String::from_utf8_lossy(&said.stdout).lines() {
            if line.contains("killed for memory") || line.contains("could not be started") {
                eprintln!("{line}");
            }
        }
        for turn in TURNS.iter().filter_map(|turn| turn.cell) {
            let said = fs::read_to_string(dir.join(format!("state/cells/{turn}/output")));
            eprint!("{}", said.unwrap_or_default());
        }
        Ok(worst)
    }
}
