//! Relative links in pages lead to files that are there.

use super::Problem;
use super::tree::{File, Tree};

/// Every relative link in a `.md` file whose target is missing.
pub fn check(tree: &Tree) -> Vec<Problem> {
    tree.ending(".md").flat_map(|page| check_page(tree, page)).collect()
}

fn check_page(tree: &Tree, page: &File) -> Vec<Problem> {
    let prose = without_code(&page.text);
    let links = prose
        .lines()
        .enumerate()
        .flat_map(|(number, line)| targets(line).map(move |target| (number + 1, target)));
    let broken = links.filter(|(_, target)| is_relative(target) && !leads_somewhere(tree, page, target));
    let problem = |(line, target): (usize, &str)| Problem {
        file: page.path.clone(),
        line,
        what: format!("the link to {target} leads nowhere"),
        hint: "name a file that is there, relative to this page".to_owned(),
    };
    broken.map(problem).collect()
}

/// The page with blocks and spans of code blank.
fn without_code(text: &str) -> String {
    let mut fence: Option<&str> = None;
    let mut out = String::new();
    for line in text.lines() {
        let start = line.trim_start();
        let marker = ["```", "~~~"].into_iter().find(|marker| start.starts_with(marker));
        match (fence, marker) {
            (None, Some(_)) => fence = marker,
            (Some(open), Some(marker)) if open == marker => fence = None,
            (None, None) => out.extend(line.split('`').step_by(2)),
            (Some(_), _) => {}
        }
        out.push('\n');
    }
    out
}

/// The targets of `[text](target "title")` and `[name]: target`.
fn targets(line: &str) -> impl Iterator<Item = &str> {
    let inline = line.match_indices("](").map(|(at, mark)| &line[at + mark.len()..]);
    let inline = inline.filter_map(|rest| rest.split_once(')')).map(|(target, _)| target);
    let defined =
        line.trim_start().strip_prefix('[').and_then(|rest| rest.split_once("]: ")).map(|(_, target)| target);
    inline.chain(defined).filter_map(|target| target.split_whitespace().next())
}

fn is_relative(target: &str) -> bool {
    !target.starts_with('#') && !target.contains("://") && !target.starts_with("mailto:")
}

fn leads_somewhere(tree: &Tree, page: &File, target: &str) -> bool {
    let target = target.trim_matches(['<', '>']);
    let target = target.split('#').next().unwrap_or(target);
    let mut path: Vec<&str> = page.path.split('/').collect();
    path.pop();
    for name in target.trim_end_matches('/').split('/') {
        match name {
            "." => {}
            ".." if path.pop().is_none() => return false,
            ".." => {}
            name => path.push(name),
        }
    }
    tree.has(&path.join("/"))
}
