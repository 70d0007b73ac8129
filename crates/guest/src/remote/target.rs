//! How another machine is named: `ssh://USER@HOST:PORT`, or `serial:DEVICE,BAUD`.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// The rate of a serial line without one in its name, and the lowest one.
const BAUD: u32 = 115_200;
const LEAST: u32 = 9_600;

/// Another machine, by the way to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// By OpenSSH's client, which is given the whole name.
    Ssh(String),
    /// By a shell at the other end of a serial line.
    Serial {
        /// The line here.
        device: PathBuf,
        /// Bits a second.
        baud: u32,
    },
}

impl Target {
    /// A short name for it: the host, or the device.
    pub fn label(&self) -> String {
        match self {
            Target::Ssh(name) => {
                let host = name.trim_start_matches("ssh://").trim_end_matches('/');
                host.rsplit('@').next().unwrap_or(host).to_owned()
            }
            Target::Serial { device, .. } => device.display().to_string(),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Ssh(name) => f.write_str(name),
            Target::Serial { device, baud } => write!(f, "serial:{},{baud}", device.display()),
        }
    }
}

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Target, String> {
        const FORMS: &str = "write ssh://USER@HOST:PORT or serial:DEVICE,BAUD";
        if let Some(host) = text.strip_prefix("ssh://") {
            let host = host.trim_end_matches('/');
            let name = host.rsplit('@').next().unwrap_or_default();
            // ssh would take them for options, and its ProxyCommand gives them to a shell.
            let is_plain = |c: char| c.is_alphanumeric() || ".-_:@[]%".contains(c);
            if name.is_empty() || host.starts_with('-') || name.starts_with(['-', ':']) {
                return Err(format!("it names no host; {FORMS}"));
            }
            let (user, address) = host
                .rsplit_once('@')
                .map_or((None, host), |(user, address)| (Some(user), address));
            let (address, port) = match address.strip_prefix('[') {
                Some(inside) => inside.split_once(']').unwrap_or(("", "")),
                None => address.split_at(address.find(':').unwrap_or(address.len())),
            };
            if user == Some("") || address.is_empty() {
                return Err(format!("it names no user or no host; {FORMS}"));
            }
            let number = || port.strip_prefix(':')?.parse::<u16>().ok();
            if !port.is_empty() && number().is_none_or(|number| number == 0) {
                return Err(format!("a port is a number from 1 to 65535; {FORMS}"));
            }
            if !host.chars().all(is_plain) {
                return Err(format!("a host's name has no such characters; {FORMS}"));
            }
            return Ok(Target::Ssh(format!("ssh://{host}")));
        }
        if let Some(line) = text.strip_prefix("serial:") {
            let (device, baud) = match line.rsplit_once(',') {
                Some((device, baud)) => (device, baud.parse().ok().filter(|baud| *baud >= LEAST)),
                None => (line, Some(BAUD)),
            };
            let baud =
                baud.ok_or("the rate of a serial line is a number such as 115200, from 9600")?;
            if device.is_empty() {
                return Err(format!("it names no device; {FORMS}"));
            }
            return Ok(Target::Serial {
                device: device.into(),
                baud,
            });
        }
        Err(match text.split_once(':') {
            Some((scheme, _)) if !scheme.contains(['@', '.', '/']) => {
                format!("`{scheme}:` is no way to another machine; {FORMS}")
            }
            _ => format!("it does not say how to get there; {FORMS}"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_read_and_others_refused_in_a_sentence() {
        let target: Target = "ssh://root@board:2222/".parse().unwrap();
        assert_eq!(target, Target::Ssh("ssh://root@board:2222".into()));
        assert_eq!(target.label(), "board:2222");
        for named in ["ssh://a@b@[fe80::1%eth0]:22", "ssh://[::1]", "ssh://host"] {
            assert_eq!(named.parse(), Ok(Target::Ssh(named.to_owned())));
        }
        let target: Target = "serial:/dev/ttyUSB0".parse().unwrap();
        assert_eq!(target.to_string(), "serial:/dev/ttyUSB0,115200");
        for (text, said) in [
            ("telnet:board", "`telnet:` is no way to another machine"),
            ("root@board", "does not say how to get there"),
            ("ssh://", "names no host"),
            ("ssh://-oProxyCommand=x", "names no host"),
            ("ssh://a@-b", "names no host"),
            ("ssh://a;b", "no such characters"),
            ("ssh://@x", "names no user or no host"),
            ("ssh://a@[::1", "names no user or no host"),
            ("ssh://u@h:99999", "a number from 1 to 65535"),
            ("ssh://u@h:0", "a number from 1 to 65535"),
            ("ssh://h:", "a number from 1 to 65535"),
            ("ssh://::1", "names no host"),
            ("ssh://h:22:1", "a number from 1 to 65535"),
            ("ssh://[::1]22", "a number from 1 to 65535"),
            ("serial:/dev/ttyS0,fast", "a number such as 115200"),
            ("serial:/dev/ttyS0,4800", "from 9600"),
            ("serial:,9600", "names no device"),
        ] {
            let error = text.parse::<Target>().unwrap_err();
            assert!(error.contains(said), "{text}: {error}");
        }
    }
}
