//! The profile being edited: its places as the text that stands in the fields, and what is wrong
//! with them.

use crate::model::error::Error;
use crate::model::location::Location;
use crate::model::profile::Profile;
use crate::model::rules::{Rule, RuleVerb};
use crate::model::units::Rate;
use crate::present::text::landing;
use crate::service::jobs;

/// A place as typed.
#[derive(Clone, Debug, Default)]
pub struct PlaceField {
    /// What stands in the field.
    pub text: String,
    /// What it means; `None` while the field is empty or wrong.
    pub place: Option<Location>,
    /// What is wrong with it.
    pub fault: Option<Error>,
}

impl PlaceField {
    /// Makes a field that holds a place.
    pub fn of(place: &Location) -> Self {
        Self {
            // Bytes that are not UTF-8 are shown escaped; the place itself is kept until the text
            // is edited.
            text: place.to_string(),
            place: Some(place.clone()),
            fault: jobs::check_place(place).err(),
        }
    }

    /// Reads the field again after its text changed.
    pub fn read(&mut self) {
        (self.place, self.fault) = match self.text.trim() {
            "" => (None, None),
            text => match Location::parse(text.as_bytes()) {
                Ok(place) => {
                    let fault = jobs::check_place(&place).err();
                    (Some(place), fault)
                }
                Err(error) => (None, Some(error)),
            },
        };
    }
}

/// A profile with its places as text.
#[derive(Clone, Debug, Default)]
pub struct Draft {
    /// The profile as of the last time that all of it could be read.
    pub profile: Profile,
    /// Where from, at least one.
    pub sources: Vec<PlaceField>,
    /// Where to.
    pub destination: PlaceField,
    /// Filter rules, one a line: `- pattern` leaves out, `+ pattern` keeps.
    pub rules: String,
    /// The limit, for example `20M`.
    pub limit: String,
    /// What is wrong with the limit.
    pub limit_fault: Option<String>,
    /// What is wrong with the name beside those of other profiles.
    pub name_fault: Option<&'static str>,
    /// What is wrong with a filter rule.
    pub rules_fault: Option<Error>,
    /// What is wrong with an ssh option.
    pub ssh_fault: Option<Error>,
    /// More ssh options, one a line.
    pub ssh_options: String,
    /// Where the first file will land.
    pub landing: Option<String>,
    /// Since when (seconds of the window's clock) there are changes that are not saved.
    pub dirty: Option<f64>,
}

impl Draft {
    /// Begins to edit a profile.
    pub fn of(profile: &Profile) -> Self {
        let mut sources: Vec<_> = profile.sources.iter().map(PlaceField::of).collect();
        if sources.is_empty() {
            sources.push(PlaceField::default());
        }
        Self {
            sources,
            destination: profile
                .destinations
                .first()
                .map(PlaceField::of)
                .unwrap_or_default(),
            rules: profile.settings.rules.iter().map(rule_line).collect(),
            limit: profile
                .settings
                .limit
                .map(|rate| rate.to_string())
                .unwrap_or_default(),
            limit_fault: None,
            name_fault: None,
            rules_fault: jobs::check_rules(&profile.settings.rules).err(),
            ssh_fault: jobs::check_ssh_options(&profile.settings.ssh).err(),
            ssh_options: profile.settings.ssh.options.join("\n"),
            landing: landing(profile),
            dirty: None,
            profile: profile.clone(),
        }
    }

    /// Takes what stands in the fields into the profile, as far as it can be read.
    pub fn read(&mut self, now: f64) {
        self.dirty = Some(now);
        for field in self.sources.iter_mut().chain([&mut self.destination]) {
            if field
                .place
                .as_ref()
                .is_none_or(|place| place.to_string() != field.text)
            {
                field.read();
            }
        }
        let profile = &mut self.profile;
        profile.sources = self
            .sources
            .iter()
            .filter_map(|f| f.place.clone())
            .collect();
        // The window edits the first destination; others stay as they are.
        let others = profile.destinations.drain(..).skip(1);
        profile.destinations = self
            .destination
            .place
            .iter()
            .cloned()
            .chain(others)
            .collect();
        profile.settings.rules = self.rules.lines().filter_map(rule_of).collect();
        profile.settings.ssh.options = self
            .ssh_options
            .lines()
            .map(str::trim)
            .filter(|l| !l.is_empty())
            .map(str::to_owned)
            .collect();
        self.rules_fault = jobs::check_rules(&profile.settings.rules).err();
        self.ssh_fault = jobs::check_ssh_options(&profile.settings.ssh).err();
        self.limit_fault = None;
        profile.settings.limit = match self.limit.trim() {
            "" => None,
            text => match text.parse::<Rate>() {
                Ok(rate) => Some(rate),
                Err(fault) => {
                    self.limit_fault = Some(fault);
                    None
                }
            },
        };
        self.landing = landing(profile);
    }

    /// Says whether a field cannot be read; nothing is saved or started meanwhile.
    pub fn faulty(&self) -> bool {
        self.name_fault.is_some()
            || self.advanced_fault()
            || self
                .sources
                .iter()
                .chain([&self.destination])
                .any(|f| f.fault.is_some())
    }

    /// Says whether a field that can be folded away cannot be read.
    pub fn advanced_fault(&self) -> bool {
        self.limit_fault.is_some() || self.rules_fault.is_some() || self.ssh_fault.is_some()
    }

    /// Says whether there is enough to start.
    pub fn complete(&self) -> bool {
        !self.faulty() && !self.profile.sources.is_empty() && self.destination.place.is_some()
    }

    /// Says why it cannot be started, for people.
    pub fn lacks(&self) -> Option<&'static str> {
        if self.name_fault.is_some() {
            Some("give the profile a name of its own first")
        } else if self.faulty() {
            Some("a field cannot be read; see the note below it")
        } else if self.profile.sources.is_empty() {
            Some("say where from first")
        } else if self.destination.place.is_none() {
            Some("say where to first")
        } else {
            None
        }
    }

    /// Swaps where from and where to; with several sources the first changes places.
    pub fn swap(&mut self) {
        if self.sources.is_empty() {
            self.sources.push(PlaceField::default());
        }
        std::mem::swap(&mut self.sources[0], &mut self.destination);
    }

    /// Puts places into the empty source fields, then behind them.
    pub fn add_sources(&mut self, places: impl IntoIterator<Item = Location>) {
        self.sources.retain(|field| !field.text.trim().is_empty());
        self.sources
            .extend(places.into_iter().map(|place| PlaceField::of(&place)));
        if self.sources.is_empty() {
            self.sources.push(PlaceField::default());
        }
    }
}

fn rule_line(rule: &Rule) -> String {
    let sign = match rule.verb {
        RuleVerb::Exclude => '-',
        RuleVerb::Include => '+',
    };
    format!("{sign} {}\n", rule.pattern)
}

/// Reads a line of the filter field; a line without a sign leaves out.
fn rule_of(line: &str) -> Option<Rule> {
    let line = line.trim();
    let (verb, pattern) = match line.strip_prefix("+ ") {
        Some(pattern) => (RuleVerb::Include, pattern),
        None => (RuleVerb::Exclude, line.strip_prefix("- ").unwrap_or(line)),
    };
    let pattern = pattern.trim();
    (!pattern.is_empty()).then(|| Rule {
        verb,
        pattern: pattern.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filter_lines_read_back_as_written() {
        let rules = vec![
            Rule {
                verb: RuleVerb::Include,
                pattern: "/keep/**".into(),
            },
            Rule {
                verb: RuleVerb::Exclude,
                pattern: "*.o".into(),
            },
        ];
        let text: String = rules.iter().map(rule_line).collect();
        assert_eq!(text.lines().filter_map(rule_of).collect::<Vec<_>>(), rules);
        assert_eq!(rule_of("*.tmp").unwrap().verb, RuleVerb::Exclude);
        assert_eq!(rule_of("   "), None);
    }

    #[test]
    fn a_filter_or_an_ssh_option_that_cannot_be_read_keeps_the_profile_from_starting() {
        let mut draft = Draft::of(&Profile::default());
        draft.rules = "- *.o\n- [".into();
        draft.read(1.0);
        assert!(draft.faulty() && draft.rules_fault.is_some());
        draft.rules = "- *.o".into();
        draft.ssh_options = "ProxyCommand=x".into();
        draft.read(2.0);
        assert!(draft.faulty() && draft.ssh_fault.is_some() && draft.rules_fault.is_none());
        draft.ssh_options.clear();
        draft.read(3.0);
        assert!(!draft.faulty());
    }

    #[test]
    fn a_wrong_limit_keeps_the_profile_from_starting() {
        let mut draft = Draft::of(&Profile::default());
        draft.limit = "fast".into();
        draft.read(1.0);
        assert!(draft.faulty() && !draft.complete());
        assert_eq!(draft.dirty, Some(1.0));
    }
}
