//! Decides about one entry: what the destination has of that name, the rule, and what follows.

use crate::model::entry::{Action, Entry, EntryKind, FileTime, Reason};
use crate::model::profile::Preserve;
use crate::model::rules::Conflict;

/// What the destination has under an entry's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Existing {
    /// What it is.
    pub kind: EntryKind,
    /// Its length in bytes.
    pub size: u64,
    /// Its modification time.
    pub mtime: FileTime,
    /// Its permission bits.
    pub mode: u32,
    /// Where it points, if it is a link.
    pub link: Option<Vec<u8>>,
}

/// What decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// What happens to existing files.
    pub conflict: Conflict,
    /// What is kept beside the bytes.
    pub preserve: Preserve,
    /// An earlier run of the same job stopped half-way: what it finished is not done again, even
    /// when the rule says to overwrite.
    pub resume: bool,
}

/// What is to be done about an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Make it; nothing may be in its place when it gets its name.
    Make(Reason),
    /// Replace what is there.
    Replace(Reason),
    /// Make it under a name that is free.
    Beside,
    /// Only its metadata changes.
    Touch(Reason),
    /// It is the same.
    Keep,
    /// Leave what is there.
    Leave(Reason),
    /// Something of another kind, or any file under rule `Fail`, is in its place.
    Refuse(&'static str),
}

impl Decision {
    /// Returns what a plan shows.
    pub fn step(self) -> (Action, Reason) {
        match self {
            Self::Make(reason) => (Action::Create, reason),
            Self::Replace(reason) => (Action::Update, reason),
            Self::Beside => (Action::Create, Reason::Conflict),
            Self::Touch(reason) => (Action::Touch, reason),
            Self::Keep => (Action::Keep, Reason::Same),
            Self::Leave(reason) => (Action::Skip, reason),
            Self::Refuse(_) => (Action::Skip, Reason::Conflict),
        }
    }
}

/// Says whether two times are the same as far as the destination can tell: one that keeps whole
/// seconds only has no nanoseconds to compare.
pub fn same_time(source: FileTime, destination: FileTime) -> bool {
    source == destination || (destination.nanos == 0 && source.secs == destination.secs)
}

/// Decides about one entry.
pub fn decide(entry: &Entry, existing: Option<&Existing>, rules: &Rules) -> Decision {
    if entry.kind == EntryKind::Special {
        return Decision::Leave(Reason::Special);
    }
    if entry.kind == EntryKind::Symlink && !rules.preserve.links {
        return Decision::Leave(Reason::Excluded);
    }
    let Some(there) = existing else {
        return Decision::Make(Reason::Missing);
    };
    match (entry.kind, there.kind) {
        (EntryKind::Dir, EntryKind::Dir) => {
            if rules.preserve.permissions && entry.mode & 0o777 != there.mode & 0o777 {
                Decision::Touch(Reason::Mode)
            } else {
                Decision::Keep
            }
        }
        (EntryKind::Dir, EntryKind::Symlink) => {
            Decision::Refuse("a link of that name is in the way, and links are not followed there")
        }
        (EntryKind::Dir, _) => Decision::Refuse("a file of that name is in the way"),
        (_, EntryKind::Dir) => Decision::Refuse("a folder of that name is in the way"),
        (_, EntryKind::Special) => {
            Decision::Refuse("a device, pipe or socket of that name is in the way")
        }
        _ => about_file(entry, there, rules),
    }
}

/// Decides about a file or link in whose place a file or link is.
fn about_file(entry: &Entry, there: &Existing, rules: &Rules) -> Decision {
    let difference = difference(entry, there, rules);
    if difference.is_none() && rules.resume {
        return Decision::Keep;
    }
    let newer = entry.mtime.secs > there.mtime.secs;
    match rules.conflict {
        Conflict::Overwrite => Decision::Replace(difference.unwrap_or(Reason::Content)),
        Conflict::Differs | Conflict::Resume => match difference {
            Some(Reason::Mode) => Decision::Touch(Reason::Mode),
            Some(reason) => Decision::Replace(reason),
            None => Decision::Keep,
        },
        Conflict::Skip => Decision::Leave(Reason::Conflict),
        Conflict::Newer if newer => Decision::Replace(Reason::Time),
        Conflict::Larger if entry.size > there.size => Decision::Replace(Reason::Size),
        Conflict::Newer | Conflict::Larger => match difference {
            None => Decision::Keep,
            Some(_) => Decision::Leave(Reason::Conflict),
        },
        // From here on, what is the same is no conflict.
        _ if difference.is_none() => Decision::Keep,
        Conflict::Rename => Decision::Beside,
        // Only a plan is made under Ask: what differs is what a person will be asked about.
        Conflict::Ask => Decision::Replace(Reason::Conflict),
        Conflict::Fail => Decision::Refuse("a file of that name is there already"),
    }
}

/// Returns how the two differ, size and time deciding as in rsync's quick check.
fn difference(entry: &Entry, there: &Existing, rules: &Rules) -> Option<Reason> {
    if entry.kind != there.kind {
        return Some(Reason::Content);
    }
    if entry.kind == EntryKind::Symlink {
        return (entry.link != there.link).then_some(Reason::Content);
    }
    if entry.size != there.size {
        return Some(Reason::Size);
    }
    if !same_time(entry.mtime, there.mtime) {
        return Some(Reason::Time);
    }
    let modes_differ = rules.preserve.permissions && entry.mode & 0o777 != there.mode & 0o777;
    modes_differ.then_some(Reason::Mode)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::relpath::RelPath;

    fn file(size: u64, secs: i64, nanos: u32) -> Entry {
        Entry {
            path: RelPath::new(*b"f").unwrap(),
            kind: EntryKind::File,
            size,
            mtime: FileTime { secs, nanos },
            mode: 0o644,
            link: None,
        }
    }

    fn there(size: u64, secs: i64, nanos: u32) -> Existing {
        Existing {
            kind: EntryKind::File,
            size,
            mtime: FileTime { secs, nanos },
            mode: 0o644,
            link: None,
        }
    }

    fn by(conflict: Conflict) -> Rules {
        Rules {
            conflict,
            preserve: Preserve::default(),
            resume: false,
        }
    }

    #[test]
    fn every_rule_decides_as_its_name_says() {
        let old = there(5, 100, 0);
        let cases = [
            (Conflict::Differs, file(5, 100, 0), Decision::Keep),
            (
                Conflict::Differs,
                file(6, 100, 0),
                Decision::Replace(Reason::Size),
            ),
            (
                Conflict::Differs,
                file(5, 99, 0),
                Decision::Replace(Reason::Time),
            ),
            (
                Conflict::Overwrite,
                file(5, 100, 0),
                Decision::Replace(Reason::Content),
            ),
            (
                Conflict::Skip,
                file(6, 200, 0),
                Decision::Leave(Reason::Conflict),
            ),
            (
                Conflict::Newer,
                file(5, 101, 0),
                Decision::Replace(Reason::Time),
            ),
            (
                Conflict::Newer,
                file(6, 99, 0),
                Decision::Leave(Reason::Conflict),
            ),
            (
                Conflict::Larger,
                file(6, 1, 0),
                Decision::Replace(Reason::Size),
            ),
            (
                Conflict::Larger,
                file(4, 999, 0),
                Decision::Leave(Reason::Conflict),
            ),
            (Conflict::Rename, file(6, 100, 0), Decision::Beside),
            (Conflict::Rename, file(5, 100, 0), Decision::Keep),
            (
                Conflict::Ask,
                file(6, 100, 0),
                Decision::Replace(Reason::Conflict),
            ),
        ];
        for (conflict, entry, want) in cases {
            assert_eq!(
                decide(&entry, Some(&old), &by(conflict)),
                want,
                "{conflict:?}"
            );
        }
        assert!(matches!(
            decide(&file(6, 1, 0), Some(&old), &by(Conflict::Fail)),
            Decision::Refuse(_)
        ));
        for conflict in Conflict::ALL {
            assert_eq!(
                decide(&file(1, 1, 1), None, &by(conflict)),
                Decision::Make(Reason::Missing)
            );
        }
    }

    #[test]
    fn fractions_of_a_second_decide_nothing_they_should_not() {
        // A destination without nanoseconds; "newer" within the same second.
        assert_eq!(
            decide(
                &file(5, 100, 7),
                Some(&there(5, 100, 0)),
                &by(Conflict::Differs)
            ),
            Decision::Keep
        );
        assert_eq!(
            decide(
                &file(6, 100, 900),
                Some(&there(5, 100, 1)),
                &by(Conflict::Newer)
            ),
            Decision::Leave(Reason::Conflict)
        );
    }

    #[test]
    fn what_an_earlier_run_finished_is_not_done_again() {
        let rules = Rules {
            resume: true,
            ..by(Conflict::Overwrite)
        };
        assert_eq!(
            decide(&file(5, 100, 7), Some(&there(5, 100, 7)), &rules),
            Decision::Keep
        );
        assert_eq!(
            decide(&file(5, 100, 8), Some(&there(5, 100, 7)), &rules),
            Decision::Replace(Reason::Time)
        );
    }

    #[test]
    fn kinds_never_replace_each_other_across_folders() {
        let dir = Existing {
            kind: EntryKind::Dir,
            ..there(0, 0, 0)
        };
        let link = Existing {
            kind: EntryKind::Symlink,
            ..there(0, 0, 0)
        };
        let folder = Entry {
            kind: EntryKind::Dir,
            ..file(0, 0, 0)
        };
        for conflict in Conflict::ALL {
            assert!(matches!(
                decide(&file(1, 1, 1), Some(&dir), &by(conflict)),
                Decision::Refuse(_)
            ));
            assert!(matches!(
                decide(&folder, Some(&there(1, 1, 1)), &by(conflict)),
                Decision::Refuse(_)
            ));
            assert!(matches!(
                decide(&folder, Some(&link), &by(conflict)),
                Decision::Refuse(_)
            ));
        }
    }

    #[test]
    fn only_the_mode_differing_sends_nothing() {
        let entry = Entry {
            mode: 0o600,
            ..file(5, 100, 0)
        };
        assert_eq!(
            decide(&entry, Some(&there(5, 100, 0)), &by(Conflict::Differs)),
            Decision::Touch(Reason::Mode)
        );
    }
}
