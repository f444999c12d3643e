//! What administrators ask of `serve`, by bytes on a socket.

use std::collections::BTreeMap;

use leftoff_wire::messages::{
    ApiKey, alter_configs, create_topics, describe_cluster, describe_configs, incremental_alter_configs,
};
use tempfile::TempDir;

use crate::serve::{Client, Server};

const TOPIC: i8 = 2;
const BROKER: i8 = 4;

/// A setting as it was told: value, source, whether it is read-only, and its synonyms.
pub(crate) type Told = (String, i8, bool, Vec<String>);

pub(crate) fn describe(
    client: &mut Client,
    of_type: i8,
    name: &str,
    keys: Option<Vec<&str>>,
) -> (i16, BTreeMap<String, Told>) {
    let resource = describe_configs::DescribeConfigsResource {
        resource_type: of_type,
        resource_name: name,
        configuration_keys: keys,
    };
    let request = describe_configs::Request {
        resources: vec![resource],
        include_synonyms: true,
        include_documentation: true,
    };
    let body = client.ask(ApiKey::DescribeConfigs, 4, |out| request.encode(out, 4).unwrap());
    let response = describe_configs::Response::decode(&body, 4).unwrap();
    let result = &response.results[0];
    let told = result.configs.iter().map(|config| {
        assert!(config.config_type > 0 && config.documentation.is_some_and(|doc| !doc.is_empty()));
        let synonyms = config.synonyms.iter().map(|one| format!("{}={}", one.name, one.value.unwrap()));
        let value = config.value.unwrap().to_owned();
        (config.name.to_owned(), (value, config.config_source, config.read_only, synonyms.collect()))
    });
    (result.error_code, told.collect())
}

/// Each step as `name op value`; the error and its text.
fn alter(
    client: &mut Client,
    (of_type, name): (i8, &str),
    validate_only: bool,
    steps: &[&str],
) -> (i16, String) {
    use incremental_alter_configs::{AlterConfigsResource, AlterableConfig, Request, Response};
    let config = |step: &'static str| {
        let (name, rest) = step.split_once(' ').unwrap();
        let (op, value) = rest.split_once(' ').unwrap_or((rest, ""));
        let config_operation = ["set", "delete", "append", "subtract", "?"].iter().position(|one| *one == op);
        let config_operation = i8::try_from(config_operation.unwrap()).unwrap();
        AlterableConfig { name, config_operation, value: (op != "delete").then_some(value) }
    };
    let steps: Vec<&'static str> = steps.iter().map(|step| &*step.to_string().leak()).collect();
    let resource = AlterConfigsResource {
        resource_type: of_type,
        resource_name: name,
        configs: steps.into_iter().map(config).collect(),
    };
    let request = Request { resources: vec![resource], validate_only };
    let body = client.ask(ApiKey::IncrementalAlterConfigs, 1, |out| request.encode(out, 1).unwrap());
    let response = Response::decode(&body, 1).unwrap();
    let result = &response.responses[0];
    (result.error_code, result.error_message.unwrap_or_default().to_owned())
}

fn replace(client: &mut Client, topic: &str, given: &[(&str, &str)]) -> i16 {
    use alter_configs::{AlterConfigsResource, AlterableConfig, Request, Response};
    let config = |(name, value): &(&'static str, &'static str)| AlterableConfig { name, value: Some(value) };
    let given: Vec<(&'static str, &'static str)> =
        given.iter().map(|(name, value)| (&*name.to_string().leak(), &*value.to_string().leak())).collect();
    let configs = given.iter().map(config).collect();
    let resource = AlterConfigsResource { resource_type: TOPIC, resource_name: topic, configs };
    let request = Request { resources: vec![resource], validate_only: false };
    let body = client.ask(ApiKey::AlterConfigs, 2, |out| request.encode(out, 2).unwrap());
    Response::decode(&body, 2).unwrap().responses[0].error_code
}

/// What was given for a topic.
fn given(client: &mut Client, topic: &str) -> Vec<String> {
    let (error, told) = describe(client, TOPIC, topic, None);
    assert_eq!(error, 0);
    let given = told.into_iter().filter(|(_, (_, source, ..))| *source == 1);
    given.map(|(name, (value, ..))| format!("{name}={value}")).collect()
}

#[test]
fn settings_of_a_topic_are_shown_changed_checked_and_there_after_a_kill() {
    let dir = TempDir::new().unwrap();
    let mut server = Server::start(dir.path(), "");
    let mut client = server.connect();
    assert_eq!(client.create("t"), 0);
    let (error, told) = describe(&mut client, TOPIC, "t", None);
    assert_eq!((error, told.len()), (0, leftoff_engine::broker::TOPIC_SETTINGS.len()));
    let retention = &told["retention.ms"];
    assert_eq!(*retention, ("604800000".into(), 5, false, vec!["log.retention.ms=604800000".into()]));
    let (_, told) = describe(&mut client, TOPIC, "t", Some(vec!["segment.bytes", "nonsense"]));
    assert_eq!(told.keys().collect::<Vec<_>>(), ["segment.bytes"]);
    assert_eq!(describe(&mut client, TOPIC, "nobody", None).0, 3);
    assert_eq!(describe(&mut client, 77, "t", None).0, 42);

    let script: &[(&[&str], i16, &str, &[&str])] = &[
        (&["retention.ms set 1000"], 0, "", &["retention.ms=1000"]),
        (&["flush.ms set 5"], 0, "", &["flush.ms=5", "retention.ms=1000"]),
        (&["flush.ms delete"], 0, "", &["retention.ms=1000"]),
        (&["cleanup.policy append compact"], 0, "", &["cleanup.policy=delete,compact", "retention.ms=1000"]),
        (&["cleanup.policy subtract delete"], 0, "", &["cleanup.policy=compact", "retention.ms=1000"]),
        (&["cleanup.policy delete"], 0, "", &["retention.ms=1000"]),
        (&["retention.ms append 1"], 40, "it is no list", &["retention.ms=1000"]),
        (
            &["retention.ms set soon"],
            40,
            "retention.ms=soon: expected a whole number",
            &["retention.ms=1000"],
        ),
        (&["nonsense set 1"], 40, "unknown topic setting \"nonsense\"", &["retention.ms=1000"]),
        (&["segment.bytes set 10000"], 40, "at least 1048576", &["retention.ms=1000"]),
        (&["flush.ms set 1", "flush.ms set 2"], 42, "\"flush.ms\" is named twice", &["retention.ms=1000"]),
        (&["flush.ms ? 1"], 42, "operation 4", &["retention.ms=1000"]),
        // All of a resource, or nothing.
        (&["flush.ms set 9", "retention.ms set soon"], 40, "retention.ms=soon", &["retention.ms=1000"]),
    ];
    for (steps, error, text, after) in script {
        let answer = alter(&mut client, (TOPIC, "t"), false, steps);
        assert!(answer.0 == *error && answer.1.contains(text), "{steps:?}: {answer:?}");
        assert_eq!(given(&mut client, "t"), *after, "{steps:?}");
    }
    assert_eq!(alter(&mut client, (TOPIC, "t"), true, &["flush.ms set 7"]), (0, String::new()), "only tried");
    assert_eq!(alter(&mut client, (TOPIC, "t"), true, &["flush.ms set x"]).0, 40);
    assert_eq!(alter(&mut client, (TOPIC, "nobody"), false, &["flush.ms set 7"]).0, 3);
    assert_eq!(given(&mut client, "t"), ["retention.ms=1000"]);
    // The older way replaces all.
    assert_eq!(replace(&mut client, "t", &[("flush.ms", "3"), ("segment.ms", "4")]), 0);
    assert_eq!(replace(&mut client, "t", &[("flush.ms", "x")]), 40);
    server.process.signal("-KILL");
    assert_eq!(server.process.end(), None);
    let server = Server::start(dir.path(), "");
    assert_eq!(given(&mut server.connect(), "t"), ["flush.ms=3", "segment.ms=4"]);
}

#[test]
fn the_broker_shows_what_it_was_started_with() {
    let dir = TempDir::new().unwrap();
    let server = Server::start(dir.path(), "--node-id 7 --default-partitions 3");
    let mut client = server.connect();
    let (error, told) = describe(&mut client, BROKER, "7", None);
    assert_eq!(error, 0);
    let of = |name: &str| (told[name].0.as_str(), told[name].1, told[name].2);
    assert_eq!(of("node.id"), ("7", 4, true));
    assert_eq!(of("num.partitions"), ("3", 4, true));
    assert_eq!(told["num.partitions"].3, ["num.partitions=3", "num.partitions=1"]);
    assert_eq!(of("auto.create.topics.enable"), ("true", 5, true));
    assert_eq!(of("group.min.session.timeout.ms"), ("6000", 5, true));
    assert_eq!(describe(&mut client, BROKER, "1", None).0, 42, "there is no broker 1");
    assert_eq!(describe(&mut client, BROKER, "", None).1.len(), 0);
    let (error, text) = alter(&mut client, (BROKER, "7"), false, &["num.partitions set 4"]);
    assert!(error == 42 && text.contains("given at its start"), "{error} {text}");

    let request = describe_cluster::Request { endpoint_type: 1, ..Default::default() };
    let body = client.ask(ApiKey::DescribeCluster, 2, |out| request.encode(out, 2).unwrap());
    let cluster = describe_cluster::Response::decode(&body, 2).unwrap();
    let broker = &cluster.brokers[0];
    assert_eq!((cluster.error_code, cluster.controller_id, broker.broker_id), (0, 7, 7));
    assert_eq!(format!("{}:{}", broker.host, broker.port), server.address);
    let request = describe_cluster::Request { endpoint_type: 2, ..Default::default() };
    let body = client.ask(ApiKey::DescribeCluster, 2, |out| request.encode(out, 2).unwrap());
    assert_eq!(describe_cluster::Response::decode(&body, 2).unwrap().error_code, 114);
}

#[test]
fn a_new_topic_is_answered_with_all_of_its_settings() {
    let dir = TempDir::new().unwrap();
    let server = Server::start(dir.path(), "");
    let mut client = server.connect();
    let script: &[(&str, &str, &str, bool, i16)] = &[
        ("tried", "retention.ms", "5", true, 0),
        ("tried", "retention.ms", "five", true, 40),
        ("no/name", "retention.ms", "5", true, 17),
        ("t", "segment.bytes", "10000", false, 40),
        ("t", "nonsense", "1", false, 40),
        ("t", "retention.ms", "5", false, 0),
    ];
    for (topic, name, value, validate_only, error) in script {
        let configs = vec![create_topics::CreatableTopicConfig { name, value: Some(value) }];
        let topic = create_topics::CreatableTopic {
            name: topic,
            num_partitions: 1,
            replication_factor: 1,
            configs,
            ..Default::default()
        };
        let request = create_topics::Request {
            topics: vec![topic],
            validate_only: *validate_only,
            ..Default::default()
        };
        let body = client.ask(ApiKey::CreateTopics, 7, |out| request.encode(out, 7).unwrap());
        let response = create_topics::Response::decode(&body, 7).unwrap();
        let made = &response.topics[0];
        assert_eq!(made.error_code, *error, "{name}={value}: {:?}", made.error_message);
        let configs = made.configs.as_deref().unwrap_or_default();
        if *error == 0 {
            assert_eq!(configs.len(), leftoff_engine::broker::TOPIC_SETTINGS.len());
            let retention = configs.iter().find(|one| one.name == "retention.ms").unwrap();
            assert_eq!((retention.value, retention.config_source), (Some("5"), 1));
        }
    }
    assert_eq!(describe(&mut client, TOPIC, "tried", None).0, 3, "it was only tried");
}
