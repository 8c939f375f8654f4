//! Sizes, rates, times and counts as text.

/// Keeps the groups of a number together and tells them apart: a narrow space that no line breaks at.
const GROUP: char = '\u{202f}';

/// Returns bytes with a binary unit, for example `3.2 GiB`; below 1 KiB exact, else 3 digits.
pub fn bytes(n: u64) -> String {
    if n < 1024 {
        return format!("{n} B");
    }
    scaled(n as f64)
}

/// Returns a rate, for example `108 MiB/s`.
pub fn rate(bytes_per_second: f64) -> String {
    if !bytes_per_second.is_finite() || bytes_per_second < 0.5 {
        return "0 B/s".to_owned();
    }
    if bytes_per_second < 1023.5 {
        return format!("{bytes_per_second:.0} B/s");
    }
    format!("{}/s", scaled(bytes_per_second))
}

/// Writes a number of at least one KiB with three digits, so that the unit changes before a
/// fourth appears.
fn scaled(mut value: f64) -> String {
    const UNITS: [&str; 7] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let mut unit = 0;
    while value >= 999.5 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    let unit = UNITS[unit];
    if value < 9.995 {
        format!("{value:.2} {unit}")
    } else if value < 99.95 {
        format!("{value:.1} {unit}")
    } else {
        format!("{value:.0} {unit}")
    }
}

/// Returns a duration, for example `1 min 12 s`, `3 h 05 min`, `0.4 s`.
pub fn duration(seconds: f64) -> String {
    if !seconds.is_finite() || seconds < 0.0 {
        return "?".to_owned();
    }
    if seconds < 9.95 {
        return format!("{seconds:.1} s");
    }
    whole_duration(seconds.round() as u64)
}

/// Returns what is left of a job, for example `1 min 12 s left`; whole seconds, so that it does
/// not flicker.
pub fn eta(seconds: f64) -> String {
    if !seconds.is_finite() || seconds < 0.0 {
        return String::new();
    }
    format!("{} left", whole_duration(seconds.ceil().max(1.0) as u64))
}

fn whole_duration(seconds: u64) -> String {
    let (days, hours) = (seconds / 86_400, seconds / 3600);
    let (minutes, rest) = (seconds / 60, seconds % 60);
    if minutes == 0 {
        format!("{rest} s")
    } else if hours == 0 {
        format!("{minutes} min {rest:02} s")
    } else if days == 0 {
        format!("{hours} h {:02} min", minutes % 60)
    } else {
        format!("{} d {:02} h", days, hours % 24)
    }
}

/// Returns how long ago something was, for example `2 h ago`; one unit is enough to read.
pub fn ago(seconds: u64) -> String {
    match seconds {
        0..60 => "just now".to_owned(),
        60..3600 => format!("{} min ago", seconds / 60),
        3600..86_400 => format!("{} h ago", seconds / 3600),
        _ => format!("{} d ago", seconds / 86_400),
    }
}

/// Returns a count with thousands separated by a narrow space, for example `12 345`.
pub fn count(n: u64) -> String {
    let digits = n.to_string();
    if digits.len() <= 4 {
        return digits;
    }
    let mut text = String::with_capacity(digits.len() * 2);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i) % 3 == 0 {
            text.push(GROUP);
        }
        text.push(digit);
    }
    text
}

/// Returns a count with its noun, for example `1 file`, `12 345 files`.
pub fn counted(n: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(n), if n == 1 { one } else { many })
}

/// Returns the share done in whole percent; never 100 before all is done.
pub fn percent(done: u64, total: u64) -> u8 {
    if total == 0 || done >= total {
        return 100;
    }
    (u128::from(done) * 100 / u128::from(total)).min(99) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_three_digits_and_say_their_unit() {
        for (n, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.00 KiB"),
            (1536, "1.50 KiB"),
            (10 << 10, "10.0 KiB"),
            (100 << 20, "100 MiB"),
            (1023 << 20, "1.00 GiB"),
            (3_435_973_837, "3.20 GiB"),
            (u64::MAX, "16.0 EiB"),
        ] {
            assert_eq!(bytes(n), text);
        }
    }

    #[test]
    fn rates_read_like_sizes_and_survive_nonsense() {
        assert_eq!(rate(0.0), "0 B/s");
        assert_eq!(rate(f64::NAN), "0 B/s");
        assert_eq!(rate(-1.0), "0 B/s");
        assert_eq!(rate(113_246_208.0), "108 MiB/s");
        assert_eq!(rate(1023.7), "1.00 KiB/s");
    }

    #[test]
    fn durations_name_two_units_at_most() {
        for (seconds, text) in [
            (0.0, "0.0 s"),
            (0.42, "0.4 s"),
            (9.96, "10 s"),
            (59.6, "1 min 00 s"),
            (72.0, "1 min 12 s"),
            (3600.0 * 3.0 + 300.0, "3 h 05 min"),
            (86_400.0 * 2.0 + 3600.0, "2 d 01 h"),
            (f64::INFINITY, "?"),
        ] {
            assert_eq!(duration(seconds), text);
        }
        assert_eq!(eta(71.2), "1 min 12 s left");
        assert_eq!(eta(0.0), "1 s left");
    }

    #[test]
    fn counts_group_thousands_and_agree_with_their_noun() {
        assert_eq!(count(9999), "9999");
        assert_eq!(count(12_345), "12\u{202f}345");
        assert_eq!(count(1_000_000), "1\u{202f}000\u{202f}000");
        assert_eq!(counted(1, "file", "files"), "1 file");
        assert_eq!(counted(0, "file", "files"), "0 files");
    }

    #[test]
    fn a_job_is_not_done_before_it_is_done() {
        assert_eq!(percent(0, 10), 0);
        assert_eq!(percent(999_999, 1_000_000), 99);
        assert_eq!(percent(10, 10), 100);
        assert_eq!(percent(u64::MAX - 1, u64::MAX), 99);
    }

    #[test]
    fn the_past_is_told_in_one_unit() {
        assert_eq!(ago(3), "just now");
        assert_eq!(ago(60), "1 min ago");
        assert_eq!(ago(7300), "2 h ago");
        assert_eq!(ago(200_000), "2 d ago");
    }
}
