//! Resets back, and runs that are killed while one reaches the database: the rows of the events that are handled again are
//! there once, and as many as before.

use anyhow::Context as _;

use super::{Judge, TOPIC};

const GROUP: &str = "reset";

impl Judge {
    pub(super) fn resets(&mut self) -> anyhow::Result<()> {
        let place = self.place();
        self.make_table(GROUP)?;
        self.runs_to_the_end(&place)?;
        let before = self.counts()?;
        for round in 0..4 {
            let to = self.below(300).to_string();
            let reset = ["groups", "reset", GROUP, "-t", TOPIC, "--to-offset", &to, "--execute", "-q"];
            self.leftoff.run(&reset, "")?;
            if round > 0 {
                let mut run = self.runner(GROUP, &place, &["--save", "every=20"])?;
                std::thread::sleep(std::time::Duration::from_millis(self.below(400)));
                run.kill().context("cannot kill a run")?;
                run.wait().context("a killed run")?;
            }
            self.runs_to_the_end(&place)?;
            self.audit(GROUP)?;
            let after = self.counts()?;
            self.expect(GROUP, after == before, &format!("round {round}: {after:?} rows, not {before:?}"));
        }
        let waits = self.leftoff.run(&["groups", "describe", GROUP, "--no-headers"], "")?;
        self.expect(GROUP, !waits.contains("waits"), &waits);
        Ok(())
    }

    fn runs_to_the_end(&mut self, place: &str) -> anyhow::Result<()> {
        let run = self.runner(GROUP, place, &[])?.wait_with_output().context("a run")?;
        let told = String::from_utf8_lossy(&run.stderr).into_owned();
        self.expect(GROUP, run.status.success(), &told);
        Ok(())
    }

    /// Rows and evidence: how many there are, and of which.
    fn counts(&self) -> anyhow::Result<String> {
        self.server.sql(&format!(
            "SELECT count(*) || ' ' || sum(n) FROM {GROUP}
             UNION ALL SELECT count(*) || ' ' || sum(\"offset\") FROM leftoff_events WHERE \"group\" = '{GROUP}'
             UNION ALL SELECT 'outcomes ' || sum(last - first + 1) FROM leftoff_outcomes WHERE \"group\" = '{GROUP}'"
        ))
    }
}
