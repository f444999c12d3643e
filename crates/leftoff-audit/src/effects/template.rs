//! Ids made from JSON: `{id}`, `{properties.code}-{properties.net}`, or a bare path.

use serde_json::Value;

/// How an id is made from a JSON object.
///
/// A text without braces is one path: `id`, `properties.code`, `$.codes[0]`. With braces it is a template:
/// `quake-{properties.code}`; `{{` and `}}` stand for braces. Text is taken as it is, numbers and booleans as JSON
/// writes them; where a path finds nothing, null, a list or an object, there is no id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdTemplate {
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(String),
    Path(Vec<String>),
}

/// Why a template cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// An opening brace is never closed, or a closing one never opened.
    #[error("unbalanced brace in id template {0:?}; write {{{{ or }}}} for a brace")]
    Unbalanced(String),
    /// A path has an empty name in it.
    #[error("empty name in path {0:?}")]
    EmptyName(String),
    /// Each event would have the same id.
    #[error("id template {0:?} names no field, for example {{id}}")]
    NoField(String),
}

impl IdTemplate {
    /// Reads a template.
    ///
    /// # Errors
    /// Unbalanced braces, an empty name, no field at all.
    pub fn parse(text: &str) -> Result<IdTemplate, TemplateError> {
        if !text.contains(['{', '}']) {
            return Ok(IdTemplate { parts: vec![Part::Path(parse_path(text)?)] });
        }
        let parts = parse_parts(text)?;
        if !parts.iter().any(|part| matches!(part, Part::Path(_))) {
            return Err(TemplateError::NoField(text.to_owned()));
        }
        Ok(IdTemplate { parts })
    }

    /// The id of a JSON value, if each path finds something.
    pub fn id_of(&self, value: &Value) -> Option<String> {
        let mut id = String::new();
        for part in &self.parts {
            match part {
                Part::Text(text) => id.push_str(text),
                Part::Path(path) => id.push_str(&scalar_at(value, path)?),
            }
        }
        Some(id)
    }

    /// The id of JSON text, if it is JSON and each path finds something.
    pub fn id_of_json(&self, json: &[u8]) -> Option<String> {
        self.id_of(&serde_json::from_slice(json).ok()?)
    }
}

fn parse_parts(text: &str) -> Result<Vec<Part>, TemplateError> {
    let unbalanced = || TemplateError::Unbalanced(text.to_owned());
    let mut parts = Vec::new();
    let mut literal = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(['{', '}']) {
        literal.push_str(&rest[..at]);
        rest = &rest[at..];
        if rest.starts_with("{{") || rest.starts_with("}}") {
            literal.push_str(&rest[..1]);
            rest = &rest[2..];
            continue;
        }
        let path_and_rest = rest.strip_prefix('{').ok_or_else(unbalanced)?;
        let (path, after) = path_and_rest.split_once('}').ok_or_else(unbalanced)?;
        if !literal.is_empty() {
            parts.push(Part::Text(std::mem::take(&mut literal)));
        }
        parts.push(Part::Path(parse_path(path)?));
        rest = after;
    }
    literal.push_str(rest);
    if !literal.is_empty() {
        parts.push(Part::Text(literal));
    }
    Ok(parts)
}

fn parse_path(text: &str) -> Result<Vec<String>, TemplateError> {
    let path = text.trim();
    let path = path.strip_prefix("$.").unwrap_or(path);
    let names: Vec<String> = path.replace('[', ".").replace(']', "").split('.').map(str::to_owned).collect();
    if names.iter().any(String::is_empty) {
        return Err(TemplateError::EmptyName(text.to_owned()));
    }
    Ok(names)
}

fn scalar_at(value: &Value, path: &[String]) -> Option<String> {
    let found = path.iter().try_fold(value, |at, name| match at {
        Value::Object(fields) => fields.get(name),
        Value::Array(items) => items.get(name.parse::<usize>().ok()?),
        _ => None,
    })?;
    match found {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(yes) => Some(yes.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}
