//! Questions on the terminal: printed with numbered answers, read without holding up the job.

use std::io::{BufRead as _, IsTerminal as _, Read as _};
use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};

use crate::cli::out::Out;
use crate::model::error::{Error, Result};
use crate::model::event::{Answer, Question};
use crate::present::question::{QuestionText, question as in_words};

/// A line that is longer is no answer.
const MAX_LINE: u64 = 4096;

/// Says whether somebody is there to answer.
pub fn somebody_is_there() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// A question that waits for its answer.
pub struct Asking {
    /// Which question of the job.
    pub id: u64,
    words: QuestionText,
    line: Receiver<Option<String>>,
}

impl Asking {
    /// Prints a question and starts to wait for a line.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn start(question: &Question, out: &Out) -> Result<Self> {
        let words = in_words(&question.kind);
        out.clear();
        out.say(&words.title);
        out.say(&words.body);
        for (number, choice) in words.choices.iter().enumerate() {
            out.say(&format!(
                "  {}  {} ({})",
                number + 1,
                choice.label,
                choice.help
            ));
        }
        out.say(&format!(
            "Type a number from 1 to {}; return takes 1:",
            words.choices.len()
        ));
        Ok(Self {
            id: question.id,
            words,
            line: read_line()?,
        })
    }

    /// Returns the answer once it is typed; `None` while it is awaited. A line that is no answer
    /// is asked for again; the end of the input cancels the job.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn poll(&mut self, out: &Out) -> Result<Option<Answer>> {
        let line = match self.line.try_recv() {
            Err(TryRecvError::Empty) => return Ok(None),
            Err(TryRecvError::Disconnected) | Ok(None) => return Ok(Some(Answer::Cancel)),
            Ok(Some(line)) => line,
        };
        let answer = answer(&self.words, &line);
        if answer.is_none() {
            out.say(&format!(
                "Type a number from 1 to {}:",
                self.words.choices.len()
            ));
            self.line = read_line()?;
        }
        Ok(answer)
    }
}

fn answer(words: &QuestionText, line: &str) -> Option<Answer> {
    let line = line.trim();
    if line.is_empty() {
        return words.choices.first().map(|choice| choice.answer);
    }
    let yes_or_no = match line.to_ascii_lowercase().as_str() {
        "y" | "yes" => Some(Answer::Yes(true)),
        "n" | "no" => Some(Answer::Yes(false)),
        _ => None,
    };
    if yes_or_no.is_some() {
        return yes_or_no.filter(|answer| words.choices.iter().any(|c| c.answer == *answer));
    }
    let number: usize = line.parse().ok()?;
    words
        .choices
        .get(number.checked_sub(1)?)
        .map(|choice| choice.answer)
}

/// Reads one line on a thread of its own, so that Ctrl+C works meanwhile. The thread ends with the
/// line or with the program.
fn read_line() -> Result<Receiver<Option<String>>> {
    // One line is all that is ever sent.
    let (sender, receiver) = sync_channel(1);
    std::thread::Builder::new()
        .name("answer".to_owned())
        .spawn(move || {
            let mut line = String::new();
            let read = std::io::stdin().lock().take(MAX_LINE).read_line(&mut line);
            // Nobody waits any more when the job has ended.
            let _ = sender.send(matches!(read, Ok(1..)).then_some(line));
        })
        .map_err(|e| Error::io("start a thread that reads the answer", &e))?;
    Ok(receiver)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::event::QuestionKind;
    use crate::model::rules::Conflict;

    #[test]
    fn a_number_a_yes_or_an_empty_line_is_an_answer_and_nothing_else() {
        let words = in_words(&QuestionKind::UploadAgent {
            host: "nas".into(),
            bytes: 3 << 20,
        });
        for (line, expected) in [
            ("1\n", Some(Answer::Yes(true))),
            ("\n", Some(Answer::Yes(true))),
            ("y\n", Some(Answer::Yes(true))),
            ("No", Some(Answer::Yes(false))),
            ("3", Some(Answer::Cancel)),
            ("0", None),
            ("4", None),
            ("-1", None),
            ("maybe", None),
        ] {
            assert_eq!(answer(&words, line), expected, "{line:?}");
        }
    }

    #[test]
    fn yes_is_no_answer_to_which_rule() {
        let kind = QuestionKind::Conflicts {
            count: 2,
            examples: vec![],
        };
        let words = in_words(&kind);
        assert_eq!(answer(&words, "y"), None);
        assert!(
            words
                .choices
                .iter()
                .any(|c| c.answer == Answer::Rule(Conflict::Skip))
        );
    }
}
