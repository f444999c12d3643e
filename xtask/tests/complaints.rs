//! The page of complaints names tests; they are there.
#![allow(missing_docs, clippy::unwrap_used)]

use std::fs;
use std::path::Path;

fn sources(folder: &Path, all: &mut String) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, all);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            all.push_str(&fs::read_to_string(&path).unwrap());
        }
    }
}

#[test]
fn every_complaint_is_tried_by_tests_that_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let page = fs::read_to_string(root.join("docs/complaints.md")).unwrap();
    let mut all = String::new();
    sources(&root.join("crates"), &mut all);
    let rows: Vec<&str> =
        page.lines().filter(|line| line.starts_with("| ") && !line.contains("--:")).collect();
    assert_eq!(rows.len(), 1 + 25, "a head and twenty-five complaints");
    for row in &rows[1..] {
        let tried = row.trim_end_matches('|').rsplit('|').next().unwrap();
        let names: Vec<&str> =
            tried.split('`').skip(1).step_by(2).filter(|name| !name.starts_with("cargo ")).collect();
        assert!(!names.is_empty(), "nothing tries: {row}");
        for name in names {
            assert!(all.contains(&format!("fn {name}()")), "there is no test {name}: {row}");
        }
    }
}
