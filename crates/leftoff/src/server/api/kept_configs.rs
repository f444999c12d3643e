//! Settings of the broker and of groups that can be changed while it runs: all of them are only kept and shown.

use leftoff_engine::broker::{KeptFor, Metadata, Request as Ask, SettingError, SettingInfo, kept_settings};
use leftoff_wire::messages::ErrorCode;

use super::configs::{self, Refused, Resource, Shown, Source};
use super::{Asked, Stopping, refused};
use crate::server::broker_settings;

/// Kafka's limit of names of groups is that of a short string; a setting's value is kept up to so many bytes.
const MAX_VALUE_BYTES: usize = 4096;

/// What is shown of a broker or group that settings are kept for.
pub(super) fn shown(metadata: &Metadata, of: &KeptFor) -> Vec<Shown> {
    kept_settings(of.resource_type).iter().map(|known| shown_one(metadata, of, known)).collect()
}

/// What was given for all brokers, which an empty name stands for.
pub(super) fn given_for_all_brokers(metadata: &Metadata) -> Vec<Shown> {
    let of = KeptFor { resource_type: Resource::BROKER, name: String::new() };
    shown(metadata, &of).into_iter().filter(|shown| shown.source != Source::Default).collect()
}

fn shown_one(metadata: &Metadata, of: &KeptFor, known: &'static SettingInfo) -> Shown {
    let is_broker = of.resource_type == Resource::BROKER;
    let for_all = KeptFor { name: String::new(), ..of.clone() };
    let places: &[(&KeptFor, Source)] = match is_broker {
        true if of.name.is_empty() => &[(of, Source::AllBrokers)],
        true => &[(of, Source::Broker), (&for_all, Source::AllBrokers)],
        false => &[(of, Source::Group)],
    };
    let given = places.iter().filter_map(|(of, source)| {
        let (_, value) = metadata.kept(of).iter().find(|(name, _)| name == known.name)?;
        Some((known.name, value.clone(), *source))
    });
    let default_name = if known.broker_name.is_empty() { known.name } else { known.broker_name };
    let synonyms: Vec<_> = given.chain([(default_name, known.default.to_owned(), Source::Default)]).collect();
    let (_, value, source) = synonyms[0].clone();
    Shown {
        name: known.name,
        value,
        source,
        is_read_only: false,
        of_type: configs::type_of(known.kind),
        synonyms,
        doc: format!("is kept and changes nothing: {}", known.doc),
    }
}

/// Gives a broker or group other settings, or only tries whether it could have them.
pub(super) async fn alter(
    asked: &Asked<'_>,
    of: KeptFor,
    validate_only: bool,
    changes: impl FnOnce(&[(String, String)]) -> Result<Vec<(String, Option<String>)>, Refused>,
) -> Result<Result<(), Refused>, Stopping> {
    if of.resource_type == Resource::BROKER
        && let Err(refused) = configs::check_broker_name(asked, &of.name)
    {
        return Ok(Err(refused));
    }
    if of.resource_type == Resource::GROUP && of.name.is_empty() {
        return Ok(Err((ErrorCode::InvalidRequest, "a group has a name".to_owned())));
    }
    let before = asked.server.store.with_state(|state| state.metadata().kept(&of).to_vec());
    let checked = changes(&before).and_then(|changes| {
        changes.iter().try_for_each(|(name, value)| check(asked, &of, name, value.as_deref()))?;
        Ok(changes)
    });
    let settings = match checked {
        Ok(settings) => settings,
        Err(refused) => return Ok(Err(refused)),
    };
    if validate_only {
        return Ok(Ok(()));
    }
    Ok(refused(asked.server.ask(Ask::Keep { of, settings }).await?).map(drop))
}

fn check(asked: &Asked<'_>, of: &KeptFor, name: &str, value: Option<&str>) -> Result<(), Refused> {
    let known = kept_settings(of.resource_type);
    let Some(known) = known.iter().find(|known| known.name == name) else {
        let is_fixed = of.resource_type == Resource::BROKER
            && broker_settings::all(asked.server, &asked.peer.advertised).iter().any(|one| one.name == name);
        return Err(if is_fixed {
            let text =
                format!("{name} is what the broker does, and is given at its start: leftoff serve --help");
            (ErrorCode::InvalidRequest, text)
        } else {
            let names: Vec<&str> = known.iter().map(|known| known.name).collect();
            let text = format!("unknown setting {name:?}; known are {}", names.join(", "));
            (ErrorCode::InvalidConfig, text)
        });
    };
    match value {
        Some(value) if !known.takes(value) || value.len() > MAX_VALUE_BYTES => {
            let (name, value) = (name.to_owned(), value.chars().take(80).collect());
            let error = SettingError::Value { name, value, expected: known.expected() };
            Err((ErrorCode::InvalidConfig, error.to_string()))
        }
        _ => Ok(()),
    }
}
