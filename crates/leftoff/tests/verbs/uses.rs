//! What the README shows, on real input, with the handlers and the data that come with the project.

use std::path::Path;

use tempfile::TempDir;

use crate::process::{Background, stdout, until};
use crate::script::{check_in, leftoff};

/// Each earthquake of magnitude 1 or more becomes an alert; the others are filtered. The runner is killed on the way.
#[test]
fn earthquakes_become_alerts() {
    let dir = TempDir::new().unwrap();
    let project = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let quakes = std::fs::read_to_string(project.join("examples/data/earthquakes.ndjson")).unwrap();
    let produced = leftoff(dir.path())
        .args(["produce", "quakes", "--key-field", "id"])
        .stdin(std::fs::File::open(project.join("examples/data/earthquakes.ndjson")).unwrap())
        .output()
        .unwrap();
    assert!(produced.status.success(), "{}", String::from_utf8_lossy(&produced.stderr));

    std::fs::copy(project.join("examples/handlers/alerts.py"), dir.path().join("alerts.py")).unwrap();
    let run = "run -t quakes -g alerts --out file:alerts.ndjson -- python3 alerts.py";
    for wanted in [20, 60] {
        let mut runner = Background::start(dir.path(), run);
        until("some alerts", || (alerts(dir.path()).lines().count() >= wanted).then_some(()));
        let described = stdout(dir.path(), "groups describe alerts --no-headers");
        assert!(described.contains("run@"), "{described}");
        runner.signal("-KILL");
        assert_eq!(runner.end(), None);
    }
    let mut runner = Background::start(dir.path(), &run.replace(" --out", " --until-end --out"));
    assert_eq!(runner.end(), Some(0));
    check_in(
        &dir,
        "
        $ check -g alerts --out file:alerts.ndjson --drained
        > filtered: [..]
        > nothing left
        > lost: [] | handled twice: []
        $ groups ls --no-headers
        > alerts  idle  -  quakes  1  0
        ",
    );
    let expect: Vec<String> = quakes.lines().filter_map(alert).collect();
    let text = alerts(dir.path());
    let got: Vec<String> = text.lines().map(|line| field(line, "id").to_owned()).collect();
    assert_eq!(got, expect);
}

fn alerts(dir: &Path) -> String {
    std::fs::read_to_string(dir.join("alerts.ndjson")).unwrap_or_default()
}

/// The id of an earthquake that is strong enough.
fn alert(line: &str) -> Option<String> {
    let magnitude: f64 = line.split_once("\"mag\": ")?.1.split(',').next()?.parse().ok()?;
    (magnitude >= 1.0).then(|| field(line, "id").to_owned())
}

fn field<'a>(line: &'a str, name: &str) -> &'a str {
    let (_, rest) = line.split_once(&format!("\"{name}\": \"")).unwrap();
    rest.split('"').next().unwrap()
}
