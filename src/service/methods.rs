//! What the methods say of themselves: names, help, options; and a check of values against them.

use crate::backend;
use crate::model::error::{Error, ErrorKind, Result};
use crate::model::options::{OptionSpec, OptionType};
use crate::model::profile::MethodChoice;

/// One method as people see it.
#[derive(Clone, Copy, Debug)]
pub struct Method {
    /// The name on the command line and in profiles.
    pub id: &'static str,
    /// The name that people see.
    pub title: &'static str,
    /// One sentence: what it is good for.
    pub about: &'static str,
    /// Its own options.
    pub options: &'static [OptionSpec],
}

/// Returns the methods in the order in which they are offered.
pub fn all() -> Vec<Method> {
    backend::ALL
        .iter()
        .map(|method| Method {
            id: method.id(),
            title: method.title(),
            about: method.about(),
            options: method.options(),
        })
        .collect()
}

/// Checks a value for an option of a method; with `Auto` some method must know the option.
///
/// # Errors
/// `Config` that names the options there are, or the values.
pub fn check_option(choice: &MethodChoice, name: &str, value: &str) -> Result<()> {
    let doing = "read a method option";
    let methods: Vec<Method> = all()
        .into_iter()
        .filter(|method| match choice {
            MethodChoice::Auto => true,
            MethodChoice::Named(id) => id == method.id,
        })
        .collect();
    let Some(spec) = methods
        .iter()
        .flat_map(|m| m.options)
        .find(|spec| spec.name == name)
    else {
        let known: Vec<&str> = methods
            .iter()
            .flat_map(|m| m.options)
            .map(|s| s.name)
            .collect();
        let hint = if known.is_empty() {
            "this method has no options of its own".to_owned()
        } else {
            format!("there are: {}", known.join(", "))
        };
        let cause = match choice {
            MethodChoice::Auto => "no method has an option of that name".to_owned(),
            MethodChoice::Named(id) => format!("{id} has no option of that name"),
        };
        return Err(Error::new(ErrorKind::Config, doing, cause)
            .at(name)
            .hint(hint));
    };
    match wrong_value(spec.kind, value) {
        None => Ok(()),
        Some(hint) => {
            let cause = format!("'{value}' is not a value for it");
            Err(Error::new(ErrorKind::Config, doing, cause)
                .at(name)
                .hint(hint))
        }
    }
}

/// Returns what to write instead of a value that does not fit.
fn wrong_value(kind: OptionType, value: &str) -> Option<String> {
    match kind {
        OptionType::Flag => {
            (!matches!(value, "true" | "false")).then(|| "write true or false".to_owned())
        }
        OptionType::Number { min, max } => {
            let fits = value.parse::<u64>().is_ok_and(|n| (min..=max).contains(&n));
            (!fits).then(|| format!("write a whole number from {min} to {max}"))
        }
        OptionType::Choice(words) => {
            (!words.contains(&value)).then(|| format!("write one of {}", words.join(", ")))
        }
        OptionType::Text => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_must_fit_its_option() {
        let number = OptionType::Number { min: 1, max: 64 };
        assert_eq!(wrong_value(number, "4"), None);
        for bad in ["0", "65", "-1", "x", ""] {
            assert!(
                wrong_value(number, bad).unwrap().contains("1 to 64"),
                "{bad}"
            );
        }
        assert_eq!(wrong_value(OptionType::Flag, "true"), None);
        assert!(wrong_value(OptionType::Flag, "yes").is_some());
        let choice = OptionType::Choice(&["none", "zstd"]);
        assert_eq!(wrong_value(choice, "zstd"), None);
        assert!(wrong_value(choice, "lz4").unwrap().contains("none, zstd"));
        assert_eq!(wrong_value(OptionType::Text, "anything"), None);
    }

    #[test]
    fn an_option_nobody_has_is_refused_by_name() {
        let error = check_option(&MethodChoice::Auto, "no-such-option", "1").unwrap_err();
        assert_eq!(error.kind, ErrorKind::Config);
        assert!(error.to_string().contains("no-such-option"), "{error}");
    }
}
