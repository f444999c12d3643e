//! A JSON value becomes the text of a column's value, exactly or not at all. The database reads the text by the type's own rules.

/// A column of a table, its domain resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Column {
    pub(super) name: String,
    /// The name of its type in the catalogue: `int4`, `timestamptz`.
    pub(super) kind: String,
    /// The type as SQL names it, without a length.
    pub(super) sql: String,
    /// Its length, scale or the like, as the catalogue packs it; -1 without one.
    pub(super) modifier: i32,
}

/// The text for a column; `None` is `NULL`.
///
/// # Errors
/// Why the value does not fit.
pub(super) fn text_of(json: &str, column: &Column) -> Result<Option<String>, String> {
    let json = json.trim_ascii();
    if json == "null" {
        return Ok(None);
    }
    let limit = |header| usize::try_from(column.modifier - header).ok().filter(|_| column.modifier >= 0);
    let text = match column.kind.as_str() {
        "int2" => integer::<i16>(json),
        "int4" => integer::<i32>(json),
        "int8" => integer::<i64>(json),
        "numeric" => numeric(json, column.modifier),
        "float4" => real(json, 9, |text| {
            let narrow: f32 = text.parse().ok()?;
            narrow.to_string().parse().ok()
        }),
        "float8" => real(json, 17, |text| text.parse().ok()),
        "bool" => matches!(json, "true" | "false")
            .then(|| json.to_owned())
            .ok_or("it is not true or false".to_owned()),
        "json" | "jsonb" => Ok(json.to_owned()),
        "text" | "citext" => string(json),
        "varchar" | "bpchar" => string(json).and_then(|text| match limit(4) {
            Some(most) if text.chars().count() > most => Err(format!("it has more than {most} characters")),
            _ => Ok(text),
        }),
        "name" => string(json).and_then(|text| {
            if text.len() < 64 { Ok(text) } else { Err("it has more than 63 bytes".to_owned()) }
        }),
        "bytea" => string(json).and_then(|text| {
            let hex = text
                .strip_prefix("\\x")
                .filter(|hex| hex.len() % 2 == 0 && hex.bytes().all(|b| b.is_ascii_hexdigit()));
            hex.map(|_| text.clone()).ok_or_else(|| "bytes are written \"\\\\x00ff\"".to_owned())
        }),
        "date" => moment(json, "a date is written \"2030-01-31\"", |parts| parts.date && !parts.time),
        "time" | "timetz" | "timestamp" | "timestamptz" => {
            let digits = limit(0).unwrap_or(6);
            let (date, zone) = (column.kind.starts_with("timestamp"), column.kind.ends_with("tz"));
            let how = match (date, zone) {
                (true, true) => "a moment is written \"2030-01-31T23:59:59Z\", with its zone",
                (true, false) => "a time of this column is written \"2030-01-31T23:59:59\", without a zone",
                (false, true) => "a time of this column is written \"23:59:59Z\", with its zone",
                (false, false) => "a time of this column is written \"23:59:59\", without a zone",
            };
            let how = format!("{how} and with up to {digits} digits of a second");
            moment(json, &how, |parts| {
                parts.date == date && parts.time && parts.zone == zone && parts.digits <= digits
            })
        }
        // What the database's own rules make of it: uuid, enums, arrays, intervals.
        _ => string(json),
    };
    text.map(Some)
}

fn string(json: &str) -> Result<String, String> {
    serde_json::from_str(json).map_err(|_| "it is not a string".to_owned())
}

fn is_number(json: &str) -> bool {
    json.starts_with(|c: char| c == '-' || c.is_ascii_digit())
}

fn integer<T: std::str::FromStr>(json: &str) -> Result<String, String> {
    let digits = json.strip_prefix('-').unwrap_or(json);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err("it is not an integer".to_owned());
    }
    json.parse::<T>().map(|_| json.to_owned()).map_err(|_| "it is out of the type's range".to_owned())
}

/// A number, or a string that holds one: what must not become a binary fraction on its way is often sent so.
fn numeric(json: &str, modifier: i32) -> Result<String, String> {
    let text = if is_number(json) { json.to_owned() } else { string(json)? };
    let (whole, fraction) = digits(&text).ok_or("it is not a decimal number")?;
    if modifier >= 4 {
        let packed = modifier - 4;
        // The scale is signed and has eleven bits.
        let (precision, scale) =
            (i64::from((packed >> 16) & 0xffff), i64::from(((packed & 0x7ff) ^ 1024) - 1024));
        if fraction > scale {
            return Err(format!("it has more than {scale} decimal places"));
        }
        if whole > precision - scale {
            return Err(format!("it has more than {} digits before the point", precision - scale));
        }
    }
    Ok(text)
}

/// How many digits before the point and how many decimal places a decimal number needs; either is negative if it ends, or
/// begins, with so many zeros.
fn digits(text: &str) -> Option<(i64, i64)> {
    let text = text.strip_prefix('-').unwrap_or(text);
    let (mantissa, exponent) =
        text.split_once(['e', 'E']).map_or((text, Some(0)), |(m, e)| (m, e.parse::<i64>().ok()));
    let exponent = exponent.filter(|exponent| exponent.abs() <= 10_000)?;
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all = format!("{whole}{fraction}");
    if whole.is_empty() || !all.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let length = |text: &str| i64::try_from(text.len()).unwrap_or(i64::MAX);
    let first = length(&all) - length(all.trim_start_matches('0'));
    let zeros = length(&all) - length(all.trim_end_matches('0'));
    if first == length(&all) {
        return Some((0, 0));
    }
    Some((length(whole) - first + exponent, length(fraction) - zeros - exponent))
}

/// A number that a binary fraction gives back as it was written.
fn real(json: &str, most: usize, kept: impl Fn(&str) -> Option<f64>) -> Result<String, String> {
    if !is_number(json) {
        return Err("it is not a number".to_owned());
    }
    let lossy = || "the type cannot hold it exactly".to_owned();
    let mantissa = json.split(['e', 'E']).next().unwrap_or(json);
    let significant: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    let significant = significant.trim_start_matches('0');
    let is_whole = !mantissa.contains('.');
    let significant = if is_whole { significant.trim_end_matches('0') } else { significant };
    let wide: f64 = json.parse().map_err(|_| lossy())?;
    let is_kept = wide.is_finite() && kept(json) == Some(wide) && significant.len() <= most;
    let is_zero = wide != 0.0 || significant.is_empty();
    let is_exact = !is_whole || json.contains(['e', 'E']) || format!("{wide:.0}") == json || wide == 0.0;
    if is_kept && is_zero && is_exact { Ok(json.to_owned()) } else { Err(lossy()) }
}

/// What a text that tells a time has.
struct Parts {
    date: bool,
    time: bool,
    zone: bool,
    digits: usize,
}

fn moment(json: &str, how: &str, fits: impl Fn(&Parts) -> bool) -> Result<String, String> {
    let text = string(json).map_err(|_| how.to_owned())?;
    parts(&text).filter(|parts| fits(parts)).map(|_| text.clone()).ok_or_else(|| how.to_owned())
}

/// `2030-01-31`, `23:59:59.5`, both with `T` or a space between, and `Z`, `+02` or `-03:30` behind a time.
fn parts(text: &str) -> Option<Parts> {
    let is_like = |text: &str, form: &str| {
        let digit = |(c, f): (char, char)| if f == '9' { c.is_ascii_digit() } else { c == f };
        text.len() == form.len() && text.chars().zip(form.chars()).all(digit)
    };
    let dated = text.get(..10).filter(|date| is_like(date, "9999-99-99"));
    let rest = text.get(dated.map_or(0, str::len)..)?;
    if dated.is_some() && rest.is_empty() {
        return Some(Parts { date: true, time: false, zone: false, digits: 0 });
    }
    let rest = if dated.is_some() { rest.strip_prefix(['T', 't', ' '])? } else { rest };
    rest.get(..8).filter(|time| is_like(time, "99:99:99"))?;
    let rest = &rest[8..];
    let end = rest.find(['Z', 'z', '+', '-']).unwrap_or(rest.len());
    let (fraction, zone) = rest.split_at(end);
    let digits = match fraction.strip_prefix('.') {
        Some(digits) if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) => {
            digits.trim_end_matches('0').len()
        }
        None if fraction.is_empty() => 0,
        _ => return None,
    };
    let hours = zone.get(1..).unwrap_or_default();
    let is_zone = matches!(zone, "" | "Z" | "z") || is_like(hours, "99") || is_like(hours, "99:99");
    is_zone.then_some(Parts { date: dated.is_some(), time: true, zone: !zone.is_empty(), digits })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(kind: &str, modifier: i32, good: &[&str], bad: &[&str]) {
        let (name, sql) = (String::new(), String::new());
        let column = Column { name, kind: kind.to_owned(), sql, modifier };
        for json in good {
            let text = text_of(json, &column);
            assert!(matches!(text, Ok(Some(_))), "{kind} takes {json}: {text:?}");
        }
        for json in bad {
            let text = text_of(json, &column);
            assert!(text.is_err(), "{kind} does not take {json}: {text:?}");
        }
        assert_eq!(text_of("null", &column), Ok(None));
    }

    #[test]
    fn a_value_fits_exactly_or_not_at_all() {
        check("int2", -1, &["0", "-32768"], &["32768", "1.0", "1e2", "\"1\"", "true", "-"]);
        check("int4", -1, &["2147483647"], &["2147483648", "[]"]);
        check("int8", -1, &["-9223372036854775808"], &["9223372036854775808"]);
        let two_of_five = (5 << 16) + 2 + 4;
        check(
            "numeric",
            two_of_five,
            &["999.99", "\"1.50\"", "1.5e1", "0.010", "0"],
            &["1000", "0.001", "1e-3", "\"NaN\"", "\"\"", "true"],
        );
        let thousands = (3 << 16) + (2045 & 0x7ff) + 4;
        check("numeric", thousands, &["123000", "999000"], &["123400", "1234000"]);
        check("numeric", -1, &["12345678901234567890.123456789", "1e400"], &["1e99999", "\"1 \""]);
        check(
            "float8",
            -1,
            &["0.1", "1e300", "9007199254740992", "0", "0.0", "-0"],
            &["1e400", "9007199254740993", "1e-400", "0.10000000000000000555", "\"1\""],
        );
        check("float4", -1, &["0.1", "16777216", "1.5"], &["16777217", "0.123456789012", "1e39"]);
        check("bool", -1, &["true", "false"], &["1", "\"true\""]);
        check("text", -1, &["\"a\""], &["1", "{}", "true"]);
        check("varchar", 4 + 3, &["\"äöü\""], &["\"abcd\"", "\"abc \""]);
        check("jsonb", -1, &["{\"a\": [1]}", "\"a\"", "1"], &[]);
        check("bytea", -1, &["\"\\\\x00Ff\"", "\"\\\\x\""], &["\"\\\\x0\"", "\"abc\"", "\"\\\\xzz\""]);
        check("date", -1, &["\"2030-01-31\""], &["\"2030-01-31T00:00:00\"", "\"today\"", "20300131"]);
        check(
            "timestamptz",
            -1,
            &[
                "\"2030-01-31T23:59:59Z\"",
                "\"2030-01-31 23:59:59.123456+02\"",
                "\"2030-01-31T00:00:00.1000000000-03:30\"",
            ],
            &[
                "\"2030-01-31T23:59:59\"",
                "\"now\"",
                "\"2030-01-31\"",
                "\"2030-01-31T23:59:59.1234567Z\"",
                "1700000000",
                "\"2030-01-31T23:59Z\"",
                "\"é\"",
                "\"2030-01-3é\"",
            ],
        );
        check("timestamptz", 0, &["\"2030-01-31T23:59:59Z\""], &["\"2030-01-31T23:59:59.5Z\""]);
        check(
            "timestamp",
            -1,
            &["\"2030-01-31T23:59:59\""],
            &["\"2030-01-31T23:59:59Z\"", "\"2030-01-31T23:59:59+02:00\""],
        );
        check("time", -1, &["\"23:59:59\""], &["\"23:59:59Z\"", "\"23:59\""]);
        check("uuid", -1, &["\"a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11\""], &["5"]);
    }
}
