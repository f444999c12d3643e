//! The rules of the house hold, also where only `cargo test` is run.

use xtask::tidy::{Tree, findings};

#[test]
fn the_house_is_tidy() {
    let tree = Tree::read(&xtask::root().expect("the workspace is there")).expect("every file can be read");
    let found: Vec<String> = findings(&tree).iter().map(ToString::to_string).collect();
    assert!(found.is_empty(), "\n{}\n", found.join("\n"));
}
