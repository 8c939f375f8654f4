//! Who runs a job, and whether that process still lives: a job whose owner is gone was cut off.

use std::fs;

use crate::store::history::Owner;

/// Returns this process. The start time tells it from a later one with the same number: clock
/// ticks since boot, mixed with the boot's own id, so that a number and a time that come again
/// after a reboot do not look alive.
pub fn me() -> Owner {
    let pid = std::process::id();
    Owner {
        pid,
        started: started(pid).unwrap_or_default(),
    }
}

/// Says whether that process still runs.
pub fn is_alive(owner: Owner) -> bool {
    started(owner.pid) == Some(owner.started)
}

/// Returns when a process started; `None` when there is none of that number.
fn started(pid: u32) -> Option<u64> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    // The second field is the name in brackets and may hold any bytes, blanks and brackets too.
    let name_ends = stat.iter().rposition(|byte| *byte == b')')?;
    let rest = std::str::from_utf8(&stat[name_ends + 1..]).ok()?;
    let mut fields = rest.split_ascii_whitespace();
    // A zombie no longer runs anything: somebody has not collected it yet.
    if matches!(fields.next()?, "Z" | "X") {
        return None;
    }
    let ticks: u64 = fields.nth(18)?.parse().ok()?;
    Some(ticks ^ boot())
}

/// Returns a number that differs from boot to boot.
fn boot() -> u64 {
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let digits: String = id
        .chars()
        .filter(char::is_ascii_hexdigit)
        .take(12)
        .collect();
    // 48 bits, moved up: the ticks of years of uptime stay apart, and the sum fits SQLite's i64.
    u64::from_str_radix(&digits, 16).unwrap_or_default() << 14 >> 1
}

#[cfg(test)]
mod tests {
    #![allow(clippy::disallowed_methods)]

    use super::*;

    #[test]
    fn this_process_is_alive_and_one_that_was_killed_is_not() {
        assert!(is_alive(me()));
        let mut child = std::process::Command::new("sleep")
            .arg("100")
            .spawn()
            .unwrap();
        let owner = Owner {
            pid: child.id(),
            started: started(child.id()).unwrap(),
        };
        assert!(is_alive(owner));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!is_alive(owner));
    }

    #[test]
    fn another_process_with_the_same_number_is_not_the_owner() {
        let mut owner = me();
        owner.started ^= 1;
        assert!(!is_alive(owner));
    }

    #[test]
    fn the_start_fits_a_database_integer() {
        assert!(i64::try_from(me().started).is_ok());
    }
}
