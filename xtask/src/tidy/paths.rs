//! The paths that a Rust file uses: in `use` trees and anywhere else, with `self` and `super` resolved.

use super::source::Token;

/// A path that a file uses.
#[derive(Debug, PartialEq, Eq)]
pub struct UsedPath {
    /// `crate::log::Log`, `std::time::Instant`; without `self` and `super`.
    pub path: String,
    /// The line, from 1 on.
    pub line: usize,
    /// Whether it stands in an inline module called `tests`.
    pub in_tests: bool,
}

/// The module that a file holds: `crate::log::segment` for `crates/x/src/log/segment.rs`.
#[must_use]
pub fn module_of(path: &str) -> Vec<String> {
    let below_src = path.split_once("/src/").map_or("lib.rs", |(_, below)| below);
    let stem = below_src.trim_end_matches(".rs");
    let names = stem.split('/').filter(|name| !["lib", "main", "mod"].contains(name));
    std::iter::once("crate").chain(names).map(str::to_owned).collect()
}

/// Every path in `tokens`, which are those of the module `module`. Outside `use` a single word is no path.
#[must_use]
pub fn used_paths(module: &[String], tokens: &[Token<'_>]) -> Vec<UsedPath> {
    let mut walk =
        Walk { tokens, at: 0, module: module.to_vec(), outer: Vec::new(), depth: 0, found: Vec::new() };
    while walk.at < tokens.len() {
        walk.step();
    }
    walk.found
}

struct Walk<'a> {
    tokens: &'a [Token<'a>],
    at: usize,
    module: Vec<String>,
    /// For each inline module around this place: the depth of braces that it starts at.
    outer: Vec<usize>,
    depth: usize,
    found: Vec<UsedPath>,
}

impl Walk<'_> {
    fn step(&mut self) {
        match (self.text(0), self.text(1), self.text(2)) {
            ("mod", name, "{") => {
                self.module.push(name.to_owned());
                self.outer.push(self.depth);
                self.depth += 1;
                self.at += 3;
            }
            ("{", ..) => {
                self.depth += 1;
                self.at += 1;
            }
            ("}", ..) => {
                self.depth = self.depth.saturating_sub(1);
                if self.outer.last() == Some(&self.depth) {
                    self.outer.pop();
                    self.module.pop();
                }
                self.at += 1;
            }
            // `impl Trait + use<'a>` names lifetimes, not a path.
            ("use", next, _) if next != "<" => {
                self.at += 1;
                self.use_tree(&[]);
            }
            (_, "::", _) if self.is_word(0) => self.plain_path(),
            _ => self.at += 1,
        }
    }

    /// `a::b::{c, d::*}`: a path for each leaf.
    fn use_tree(&mut self, above: &[String]) {
        let mut path = above.to_vec();
        let line = self.tokens.get(self.at).map_or(0, |token| token.line);
        loop {
            match self.text(0) {
                "::" => self.at += 1,
                "{" => {
                    self.at += 1;
                    return self.use_group(&path);
                }
                "as" => self.at += 2,
                _ if self.is_word(0) => {
                    path.push(self.text(0).to_owned());
                    self.at += 1;
                }
                "*" => self.at += 1,
                _ => return self.note(path, line),
            }
        }
    }

    fn use_group(&mut self, path: &[String]) {
        while self.at < self.tokens.len() {
            match self.text(0) {
                "}" => {
                    self.at += 1;
                    return;
                }
                "," => self.at += 1,
                _ if self.is_word(0) || ["::", "{", "*"].contains(&self.text(0)) => self.use_tree(path),
                _ => self.at += 1,
            }
        }
    }

    /// `a::b::c` in an expression, a type or an attribute.
    fn plain_path(&mut self) {
        let line = self.tokens[self.at].line;
        let mut path = vec![self.text(0).to_owned()];
        self.at += 1;
        while self.text(0) == "::" {
            self.at += 1;
            if self.is_word(0) {
                path.push(self.text(0).to_owned());
                self.at += 1;
            }
        }
        self.note(path, line);
    }

    fn note(&mut self, path: Vec<String>, line: usize) {
        let in_tests = self.module.iter().any(|name| name == "tests");
        let path = self.resolved(&path).join("::");
        self.found.push(UsedPath { path, line, in_tests });
    }

    fn resolved(&self, path: &[String]) -> Vec<String> {
        let mut base = match path.first().map(String::as_str) {
            Some("self" | "super") => self.module.clone(),
            _ => Vec::new(),
        };
        let mut rest = path;
        while let Some((first, behind)) = rest.split_first() {
            match first.as_str() {
                "self" => {}
                "super" => drop(base.pop()),
                _ => break,
            }
            rest = behind;
        }
        // `use a::{self}` ends in `self`.
        base.extend(rest.iter().filter(|name| *name != "self").cloned());
        base
    }

    fn text(&self, ahead: usize) -> &str {
        self.tokens.get(self.at + ahead).map_or("", |token| token.text)
    }

    fn is_word(&self, ahead: usize) -> bool {
        self.tokens.get(self.at + ahead).is_some_and(|token| token.is_word())
    }
}
