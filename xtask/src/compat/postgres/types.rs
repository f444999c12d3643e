//! JSON values in columns of a real server: each is there as it was, or is its event's failure with column and value named, and
//! no other event's. And ids: what was produced twice is taken once.

use std::fs;

use anyhow::Context as _;
use serde_json::Value;

use super::Judge;

const COLUMNS: &str = "small smallint, whole int, long bigint, exact numeric(6,2), free numeric, double double precision,
    word text, short varchar(3), yes boolean, moment timestamptz, day date, doc json, tree jsonb, raw bytea, uid uuid,
    list int[], words text[], needed int NOT NULL DEFAULT 1, positive int CHECK (positive > 0)";

/// A column, a value of the handler's, and how PostgreSQL shows what it holds; `Err`: what the failure says beside the column.
const CASES: &[(&str, &str, Result<&str, &str>)] = &[
    ("small", "-32768", Ok("-32768")),
    ("small", "32768", Err("32768")),
    ("whole", "2147483647", Ok("2147483647")),
    ("whole", "2147483648", Err("2147483648")),
    ("whole", "1.5", Err("1.5")),
    ("whole", "\"7\"", Err("\"7\"")),
    ("long", "9223372036854775807", Ok("9223372036854775807")),
    ("long", "9223372036854775808", Err("9223372036854775808")),
    ("exact", "1234.5", Ok("1234.50")),
    ("exact", "\"0.01\"", Ok("0.01")),
    ("exact", "0.001", Err("0.001")),
    ("exact", "12345", Err("12345")),
    ("free", "12345678901234567890.123456789", Ok("12345678901234567890.123456789")),
    ("double", "0.1", Ok("0.1")),
    ("double", "9007199254740993", Err("9007199254740993")),
    ("word", "\"\\u00e4\\n'\\\"; DROP TABLE types; --\"", Ok("ä\n'\"; DROP TABLE types; --")),
    ("word", "\"a\\u0000b\"", Err("0x00")),
    ("word", "7", Err("7")),
    ("short", "\"äöü\"", Ok("äöü")),
    ("short", "\"four\"", Err("\"four\"")),
    ("yes", "true", Ok("true")),
    ("yes", "1", Err("1")),
    ("moment", "\"2030-01-31T23:59:59.5+02:00\"", Ok("2030-01-31 21:59:59.5+00")),
    ("moment", "\"2030-01-31T23:59:59\"", Err("2030-01-31T23:59:59")),
    ("moment", "\"2030-02-31T23:59:59Z\"", Err("2030-02-31T23:59:59Z")),
    ("day", "\"2030-01-31\"", Ok("2030-01-31")),
    ("day", "\"today\"", Err("today")),
    ("doc", "{\"b\":1,\"a\":[1,2]}", Ok("{\"b\":1,\"a\":[1,2]}")),
    ("tree", "{\"b\":1,\"a\":[1,2]}", Ok("{\"a\": [1, 2], \"b\": 1}")),
    ("raw", "\"\\\\x00ff\"", Ok("\\x00ff")),
    ("raw", "\"plain\"", Err("plain")),
    ("uid", "\"A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11\"", Ok("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11")),
    ("uid", "\"a0eebc99\"", Err("a0eebc99")),
    ("list", "\"{1,2,NULL}\"", Ok("{1,2,NULL}")),
    ("list", "\"{1,x}\"", Err("\"x\"")),
    ("words", "\"{a,\\\"b c\\\"}\"", Ok("{a,\"b c\"}")),
    ("word", "null", Ok("")),
    ("needed", "null", Err("not-null")),
    ("positive", "-1", Err("types_positive_check")),
    ("nowhere", "1", Err("has no column")),
];

const HANDLER: &str = r#"
import json, sys
for line in iter(sys.stdin.readline, ""):
    event = json.loads(line)
    if event.get("stop"): break
    # The value goes back as it came: Python would write some numbers in another way.
    if "id" in event: print('{"id": %s, "records": [%s]}' % (json.dumps(event["id"]), event["value"]), flush=True)
"#;

impl Judge {
    /// How many values were tried.
    pub(super) fn types(&mut self) -> anyhow::Result<usize> {
        self.server.sql(&format!("CREATE TABLE types (number int, {COLUMNS})"))?;
        fs::write(self.folder.join("types.py"), HANDLER).context("cannot write the handler")?;
        let rows = CASES.iter().enumerate().map(|(number, (column, value, _))| {
            format!("{{\"table\":\"types\",\"row\":{{\"number\":{number},\"{column}\":{value}}}}}\n")
        });
        self.leftoff.run(&["topics", "create", "typed", "-p", "1", "-q"], "")?;
        self.leftoff.run(&["produce", "typed", "-q"], &rows.collect::<String>())?;
        self.copies("types", "typed", &["--on-fail", "dlq", "--attempts", "1", "--save", "every=10"])?;
        for (number, (column, value, expect)) in CASES.iter().enumerate() {
            let case = format!("{column} {value}");
            let count = self.server.sql(&format!("SELECT count(*) FROM types WHERE number = {number}"))?;
            let sql =
                format!("SELECT why FROM leftoff_dead WHERE \"group\" = 'types' AND \"offset\" = {number}");
            let why = self.server.sql(&sql)?;
            match expect {
                Ok(text) => {
                    let found = format!("SELECT ({column})::text FROM types WHERE number = {number}");
                    let found = if count == "1" { self.server.sql(&found)? } else { why };
                    self.expect(
                        "types",
                        found == *text && count == "1",
                        &format!("{case} became {found:?} ({count} rows)"),
                    );
                }
                Err(says) => {
                    let is_told = why.contains(says) && why.contains(column);
                    self.expect(
                        "types",
                        is_told && count == "0",
                        &format!("{case} failed with {why:?} ({count} rows)"),
                    );
                }
            }
        }
        self.twins()?;
        Ok(CASES.len())
    }

    /// Each event twice, in two runs.
    fn twins(&mut self) -> anyhow::Result<()> {
        let lines = |numbers: std::ops::Range<usize>| -> String {
            numbers.flat_map(|n| [n, n]).map(|n| format!("{{\"id\":\"i{n}\"}}\n")).collect()
        };
        self.leftoff.run(&["topics", "create", "twins", "-p", "2", "-q"], "")?;
        for numbers in [0..40, 20..60] {
            self.leftoff.run(&["produce", "twins", "-q", "--key-field", "id"], &lines(numbers))?;
            self.copies("twins", "twins", &["--dedupe", "json:id", "--save", "every=7"])?;
        }
        let sql = "SELECT count(*) || ' ' || count(DISTINCT record->>'id') FROM leftoff_events WHERE \"group\" = 'twins'";
        let counts = self.server.sql(sql)?;
        self.expect("twins", counts == "60 60", &format!("rows and distinct rows: {counts}"));
        let place = self.place();
        let said = self
            .leftoff
            .run(&["check", "-g", "twins", "--out", &place, "--drained", "--format", "json"], "")?;
        let said: Value = serde_json::from_str(&said).unwrap_or_default();
        self.expect("twins", said.to_string().contains("absorbed"), &format!("the audit says: {said}"));
        Ok(())
    }

    fn copies(&mut self, group: &str, topic: &str, more: &[&str]) -> anyhow::Result<()> {
        let (place, handler) = (self.place(), self.folder.join("types.py").display().to_string());
        let mut line = vec!["run", "-t", topic, "-g", group, "--out", &place, "--until-end", "-q"];
        line.extend(more);
        line.extend(["--", "python3", &handler]);
        let ended = self.leftoff.command(&line).output().context("a run")?;
        let told = String::from_utf8_lossy(&ended.stderr).into_owned();
        self.expect(group, ended.status.success(), &told);
        Ok(())
    }
}
