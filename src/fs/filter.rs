//! What a transfer leaves out: the rules of a profile, ready to be asked for each path.

use crate::fs::glob::Glob;
use crate::model::error::{Error, ErrorKind, Result};
use crate::model::rules::{Rule, RuleVerb};

/// Compiled rules; the first that matches wins, and what none matches stays in.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    rules: Vec<(RuleVerb, Glob)>,
}

impl Filter {
    /// Compiles rules.
    ///
    /// # Errors
    /// `Config`, naming the pattern that is wrong and why.
    pub fn new(rules: &[Rule]) -> Result<Self> {
        let compile = |rule: &Rule| {
            match Glob::new(&rule.pattern) {
            Ok(glob) => Ok((rule.verb, glob)),
            Err(why) => Err(Error::new(ErrorKind::Config, "use the filter pattern", why)
                .at(rule.pattern.as_str())
                .hint("correct the pattern, or put a backslash before a character that is meant as it is")),
        }
        };
        let rules = rules.iter().map(compile).collect::<Result<_>>()?;
        Ok(Self { rules })
    }

    /// Says whether a path below the top of the transfer is left out. Whoever asks does not
    /// enter a folder that is.
    pub fn excludes(&self, path: &[u8], is_dir: bool) -> bool {
        let first = self
            .rules
            .iter()
            .find(|(_, glob)| glob.matches(path, is_dir));
        first.is_some_and(|(verb, _)| *verb == RuleVerb::Exclude)
    }

    /// Says whether nothing is ever left out.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(rules: &[(RuleVerb, &str)]) -> Filter {
        let rules: Vec<Rule> = rules
            .iter()
            .map(|(verb, pattern)| Rule {
                verb: *verb,
                pattern: (*pattern).to_owned(),
            })
            .collect();
        Filter::new(&rules).unwrap()
    }

    #[test]
    fn the_first_rule_that_matches_wins() {
        let filter = filter(&[
            (RuleVerb::Include, "keep.log"),
            (RuleVerb::Exclude, "*.log"),
            (RuleVerb::Exclude, "/build/"),
        ]);
        assert!(!filter.excludes(b"a/keep.log", false));
        assert!(filter.excludes(b"a/other.log", false));
        assert!(filter.excludes(b"build", true));
        assert!(!filter.excludes(b"build", false));
        assert!(!filter.excludes(b"a/build", true));
        assert!(!filter.excludes(b"a", true));
    }

    #[test]
    fn a_bad_pattern_is_named() {
        let rule = Rule {
            verb: RuleVerb::Exclude,
            pattern: "a[b".into(),
        };
        let error = Filter::new(&[rule]).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Config);
        assert_eq!(
            error.to_string(),
            "Failed to use the filter pattern: a '[' has no ']' \u{2014} a[b"
        );
    }
}
