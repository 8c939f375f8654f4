//! What a person is asked while a job runs: title, explanation and the words on the buttons.

use crate::model::event::{Answer, QuestionKind};
use crate::model::rules::Conflict;
use crate::model::untrusted::shown;
use crate::present::units::{bytes, counted};

/// One answer that is offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The word on the button.
    pub label: &'static str,
    /// What it does.
    pub help: &'static str,
    /// What the engine is told.
    pub answer: Answer,
}

/// A question in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuestionText {
    /// The question itself.
    pub title: String,
    /// What is at stake, in one or two sentences.
    pub body: String,
    /// The answers; the first is the usual one, the last stops the job.
    pub choices: Vec<Choice>,
    /// The answer may be kept for this host.
    pub host: Option<String>,
}

const CANCEL: Choice = Choice {
    label: "Cancel the job",
    help: "stop; what has arrived stays",
    answer: Answer::Cancel,
};

/// Puts a question into words.
pub fn question(kind: &QuestionKind) -> QuestionText {
    match kind {
        QuestionKind::UploadAgent { host, bytes: size } => {
            let name = shown(host.as_bytes());
            QuestionText {
                title: format!("Copy the helper program to {name}?"),
                body: format!(
                    "Raw TCP needs a helper of {} on {name}. It is kept in ~/.cache/transload \
                     there, is started through your ssh login, and ends with the job.",
                    bytes(*size)
                ),
                choices: vec![
                    Choice {
                        label: "Copy and start",
                        help: "use raw TCP",
                        answer: Answer::Yes(true),
                    },
                    Choice {
                        label: "Do without",
                        help: "use another method that needs no helper",
                        answer: Answer::Yes(false),
                    },
                    CANCEL,
                ],
                host: Some(host.clone()),
            }
        }
        QuestionKind::PlainTcp { host } => {
            let name = shown(host.as_bytes());
            QuestionText {
                title: format!("Send without encryption to {name}?"),
                body: "Plain TCP is the fastest way, but others on that network can read the \
                       data. Changes on the way are detected."
                    .to_owned(),
                choices: vec![
                    Choice {
                        label: "Send through ssh",
                        help: "encrypted, slower",
                        answer: Answer::Yes(false),
                    },
                    Choice {
                        label: "Send plain",
                        help: "readable on that network, faster",
                        answer: Answer::Yes(true),
                    },
                    CANCEL,
                ],
                host: Some(host.clone()),
            }
        }
        QuestionKind::Conflicts { count, .. } => QuestionText {
            title: format!(
                "{} already at the destination",
                counted(*count, "file is", "files are")
            ),
            body: "They differ from what is to be sent. One answer counts for all of them."
                .to_owned(),
            choices: [
                (Conflict::Skip, "Skip"),
                (Conflict::Overwrite, "Overwrite"),
                (Conflict::Newer, "Newer"),
                (Conflict::Larger, "Larger"),
                (Conflict::Rename, "Keep both"),
            ]
            .into_iter()
            .map(|(rule, label)| Choice {
                label,
                help: super::text::conflict(rule).1,
                answer: Answer::Rule(rule),
            })
            .chain([CANCEL])
            .collect(),
            host: None,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_names_the_host_escaped_and_what_is_at_stake() {
        let asked = question(&QuestionKind::UploadAgent {
            host: "n\u{202e}as".into(),
            bytes: 3 << 20,
        });
        assert_eq!(asked.title, "Copy the helper program to n\\u{202e}as?");
        assert!(asked.body.contains("3.00 MiB"));
        assert_eq!(asked.host.as_deref(), Some("n\u{202e}as"));
        let asked = question(&QuestionKind::PlainTcp { host: "nas".into() });
        assert!(asked.body.contains("can read"));
        // The safe answer comes first: it is what Return presses.
        assert_eq!(asked.choices[0].answer, Answer::Yes(false));
    }

    #[test]
    fn conflicts_are_counted_and_every_answer_can_be_given() {
        let asked = question(&QuestionKind::Conflicts {
            count: 1,
            examples: Vec::new(),
        });
        assert_eq!(asked.title, "1 file is already at the destination");
        let labels: Vec<_> = asked.choices.iter().map(|c| c.label).collect();
        assert_eq!(
            labels,
            [
                "Skip",
                "Overwrite",
                "Newer",
                "Larger",
                "Keep both",
                "Cancel the job"
            ]
        );
    }
}
