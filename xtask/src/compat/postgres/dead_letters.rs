//! Events that cannot be handled are rows beside the others: in one transaction with the offset, listed, produced again, dropped.

use std::fs;

use anyhow::Context as _;

use super::{Judge, TOPIC};

/// It cannot handle what ends with 7.
const HANDLER: &str = r#"
import json, sys
for line in iter(sys.stdin.readline, ""):
    event = json.loads(line)
    if event.get("stop"): break
    if "id" not in event: continue
    if event["key"].endswith("7"): answer = {"error": "a seven\u0000", "retry": False}
    else: answer = {"records": [json.loads(event["value"])]}
    print(json.dumps({"id": event["id"], **answer}), flush=True)
"#;

impl Judge {
    pub(super) fn dead_letters(&mut self) -> anyhow::Result<()> {
        let part = "dead letters";
        let handler = self.folder.join("sevens.py");
        fs::write(&handler, HANDLER).context("cannot write the handler")?;
        let place = self.place();
        let handler = handler.display().to_string();
        let run =
            ["run", "-t", TOPIC, "-g", "dead", "--out", &place, "--until-end", "--on-fail", "dlq", "-q"];
        let more = ["--save", "every=50", "--", "python3", &handler];
        let ended = self.leftoff.command(&run).args(more).output().context("a run")?;
        let told = String::from_utf8_lossy(&ended.stderr).into_owned();
        self.expect(part, ended.status.success(), &told);

        let bad = "SELECT count(*) FROM leftoff_dead WHERE \"group\" = 'dead'";
        let letters: usize = self.server.sql(bad)?.trim().parse().context("a count")?;
        let listed = self.leftoff.run(&["dlq", "ls", "dead", "--format", "csv", "--no-headers"], "")?;
        self.expect(
            part,
            letters > 0 && listed.lines().count() == letters,
            &format!("{letters} rows, listed: {listed}"),
        );
        let checked = self.leftoff.run(&["check", "-g", "dead", "--out", &place, "--drained"], "")?;
        self.expect(part, checked.contains("dead: ") && checked.contains("lost: []"), &checked);

        let first = listed.split(',').next().unwrap_or_default().to_owned();
        self.leftoff.run(&["dlq", "replay", "dead", &first, "--execute"], "")?;
        self.leftoff.run(&["dlq", "drop", "dead", "--all", "--execute"], "")?;
        let states = "SELECT string_agg(state || ' ' || n, ', ' ORDER BY state) FROM
            (SELECT state, count(*) AS n FROM leftoff_dead WHERE \"group\" = 'dead' GROUP BY state) AS s";
        let states = self.server.sql(states)?;
        let expect = format!("dropped {}, replayed 1", letters - 1);
        self.expect(part, states.trim() == expect, &format!("{states}, not {expect}"));
        Ok(())
    }
}
