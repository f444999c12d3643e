//! What a run says when it cannot go on, and that nothing is lost by it.

use std::fs;
use std::path::Path;

use anyhow::Context as _;

use super::{Judge, address};

const RESET: &[&str] = &["groups", "reset", "away", "-t", super::TOPIC, "--to-earliest"];
const PASSWORD: &str = "hunter2secret";

impl Judge {
    /// Each with the exit code that the manual names; then the cause is mended and the run ends well.
    pub(super) fn refusals(&mut self) -> anyhow::Result<()> {
        self.away()?;
        self.passwords()?;
        self.server.sql(
            "CREATE ROLE reader SUPERUSER LOGIN; ALTER ROLE reader SET default_transaction_read_only = on",
        )?;
        self.make_table("refused")?;
        let read_only = address("reader", self.server.socket(), "");
        self.ends("refused", &read_only, 4, "read-only transaction")?;
        let nowhere = self.place().replace("/postgres", "/nowhere").replace("nowhere://", "postgres://");
        self.ends("refused", &nowhere, 3, "does not exist")?;
        let place = self.place();
        self.ends("missing", &place, 1, "there is no table \"missing\"")?;
        self.make_table("missing")?;
        self.ends("missing", &place, 0, "nothing left")?;
        self.audit("missing")?;

        self.server.sql("INSERT INTO refused VALUES ('k400', 1)")?;
        self.ends("refused", &place, 1, "duplicate key value")?;
        self.server.sql(
            "DELETE FROM refused WHERE leftoff_id IS NULL; ALTER TABLE refused ALTER n TYPE smallint USING n",
        )?;
        self.server.sql("DROP TABLE refused; DELETE FROM leftoff_offsets WHERE \"group\" = 'refused'")?;
        Ok(())
    }

    /// The server goes and stays away; then it is there again.
    fn away(&mut self) -> anyhow::Result<()> {
        self.make_table("away")?;
        let place = address("judge", self.server.socket(), "?reconnect=0s");
        let runner = self.runner("away", &place, &["--save", "every=5"])?;
        let saved = "SELECT coalesce(max(next), 0) FROM leftoff_offsets WHERE \"group\" = 'away'";
        while self.server.sql(saved)? == "0" {}
        self.server.end("-QUIT")?;
        let ended = runner.wait_with_output().context("a run")?;
        let told = String::from_utf8_lossy(&ended.stderr).into_owned();
        self.expect(
            "away",
            ended.status.code() == Some(3),
            &format!("a server that stayed away: {} {told}", ended.status),
        );
        self.ends("away", &place, 3, "cannot reach")?;
        // What is only shown is shown; what is moved needs the server's word.
        for (verb, code) in [(&["groups", "describe", "away"][..], 0), (&["groups", "ls"], 0), (RESET, 3)] {
            let ended = self.leftoff.command(verb).output().context("a verb")?;
            let told = String::from_utf8_lossy(&ended.stderr).into_owned();
            let is_so = ended.status.code() == Some(code) && told.contains("cannot reach");
            self.expect("away", is_so, &format!("{verb:?} without a server: {} {told}", ended.status));
        }
        self.server.start_again()?;
        self.ends("away", &place, 0, "nothing left")?;
        self.audit("away")
    }

    /// A password works, a wrong one is told as such, and neither is shown or kept.
    fn passwords(&mut self) -> anyhow::Result<()> {
        self.server.sql(&format!("CREATE ROLE guarded SUPERUSER LOGIN PASSWORD '{PASSWORD}'"))?;
        self.make_table("guarded")?;
        let with = |password: &str| address(&format!("guarded:{password}"), self.server.socket(), "");
        let (right, wrong) = (with(PASSWORD), with("hunter2wrong"));
        self.ends("guarded", &wrong, 3, "password authentication failed")?;
        self.ends("guarded", &right, 0, "nothing left")?;
        self.audit("guarded")?;
        let data = self.leftoff.data().to_owned();
        let is_kept = holds(&data, PASSWORD.as_bytes())?;
        self.expect("guarded", !is_kept, "the password is in the data directory");
        Ok(())
    }

    pub(super) fn ends(&mut self, group: &str, place: &str, code: i32, with: &str) -> anyhow::Result<()> {
        let mut command =
            self.leftoff.command(&["run", "-t", super::TOPIC, "-g", group, "--out", place, "--until-end"]);
        command.args(["--save", "every=50", "--", "python3"]).arg(self.folder.join("handler.py"));
        let ended = command.arg(self.folder.join("pid")).arg(group).output().context("a run")?;
        let told = String::from_utf8_lossy(&ended.stderr).into_owned();
        let is_so = ended.status.code() == Some(code) && told.contains(with);
        self.expect(
            group,
            is_so,
            &format!("{place}: exit code {code} and '{with}' expected: {} {told}", ended.status),
        );
        self.expect(group, !told.contains("hunter2"), "a password is shown");
        Ok(())
    }
}

/// Whether a file below a folder holds some bytes.
fn holds(folder: &Path, bytes: &[u8]) -> anyhow::Result<bool> {
    for entry in fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))? {
        let path = entry?.path();
        let found = if path.is_dir() {
            holds(&path, bytes)?
        } else {
            let content = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
            content.windows(bytes.len()).any(|window| window == bytes)
        };
        if found {
            return Ok(true);
        }
    }
    Ok(false)
}
