//! The runner dies at the named points of a save, as by SIGKILL, each in a group of its own.

use std::os::unix::process::ExitStatusExt as _;

use anyhow::Context as _;

use super::Judge;

/// Making the tables, and the claim, are transactions too: what comes later are saves.
const POINTS: &[&str] = &[
    "begin-before:4",
    "begin-before:6",
    "commit-before:3",
    "commit-before:4",
    "commit-before:6",
    "commit-after:3",
    "commit-after:4",
    "commit-after:6",
    "sink-before:2",
    "sink-before:4",
    "sink-after:2",
    "sink-after:4",
    "group-before:1",
    "group-after:1",
];

impl Judge {
    /// How many deaths there were.
    pub(super) fn points(&mut self) -> anyhow::Result<usize> {
        let place = self.place();
        for (number, point) in POINTS.iter().enumerate() {
            let group = format!("point{number}");
            self.make_table(&group)?;
            let mut command = self.command_of(&self.leftoff, &group, &place, &["--save", "every=5"]);
            let died = command.env("LEFTOFF_DIE_AT", point).output().context("a run")?;
            let told = String::from_utf8_lossy(&died.stderr).into_owned();
            self.expect(&group, died.status.signal() == Some(9), &format!("{point} was not passed: {told}"));
            let last = self.runner(&group, &place, &[])?.wait_with_output().context("a run")?;
            let told = String::from_utf8_lossy(&last.stderr).into_owned();
            self.expect(&group, last.status.success(), &format!("after {point}: {told}"));
            self.audit(&group)?;
        }
        Ok(POINTS.len())
    }
}
