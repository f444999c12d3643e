//! Asking before something is deleted for good.

use std::io::{self, BufRead, IsTerminal, Write};

use super::failure::Failure;

/// Asks `question` on the terminal and goes on only with a yes. `noconfirm` answers in advance; where nobody
/// can be asked, it is needed.
pub fn confirm(question: &str, noconfirm: bool) -> Result<(), Failure> {
    if noconfirm {
        return Ok(());
    }
    if !io::stdin().is_terminal() {
        return Err(Failure::refused(format!("{question} nobody can be asked here"))
            .hint("add --noconfirm if you are sure"));
    }
    ask(question, &mut io::stdin().lock(), &mut io::stderr())
}

fn ask(question: &str, answers: &mut impl BufRead, out: &mut impl Write) -> Result<(), Failure> {
    let mut answer = String::new();
    let asked = write!(out, "{question} [y/N] ").and_then(|()| out.flush());
    asked
        .and_then(|()| answers.read_line(&mut answer))
        .map_err(|error| Failure::refused("cannot ask on this terminal").because(error))?;
    match answer.trim().to_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => Err(Failure::refused("not confirmed, so nothing was changed")),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn only_a_yes_goes_on() {
        let table =
            [("y\n", true), ("YES\n", true), (" yes", true), ("n\n", false), ("\n", false), ("", false)];
        for (answer, expect) in table {
            let mut shown = Vec::new();
            let got = ask("delete topic 'quakes'?", &mut answer.as_bytes(), &mut shown);
            assert_eq!(got.is_ok(), expect, "{answer:?}");
            assert_eq!(String::from_utf8(shown).unwrap(), "delete topic 'quakes'? [y/N] ");
        }
        assert!(confirm("sure?", true).is_ok());
    }
}
