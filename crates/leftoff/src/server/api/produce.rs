//! Produce 3 to 11 and InitProducerId 0 to 5. acks=1 and acks=all are the same: the answer comes when the records are on the
//! disk. With acks=0 there is no answer. Transactions are not served.

use leftoff_engine::broker::{
    Incoming, InvalidBatch, PartitionId, ProduceRules, RecordError, Reply, Request as Ask,
};
use leftoff_wire::messages::produce::{
    BatchIndexAndErrorMessage, PartitionProduceResponse, Request, Response, TopicProduceResponse,
};
use leftoff_wire::messages::{ErrorCode, init_producer_id};

use super::{Asked, Closing, error_of};
use crate::store::now;

/// What became of a partition's records.
enum Outcome {
    /// They are with the broker, under this number.
    Sent(usize),
    Failed(Failure),
}

struct Failure {
    code: i16,
    text: String,
    records: Vec<RecordError>,
}

impl Failure {
    fn new(error: ErrorCode, text: &str) -> Failure {
        Failure { code: error.code(), text: text.to_owned(), records: Vec::new() }
    }
}

impl From<InvalidBatch> for Failure {
    fn from(error: InvalidBatch) -> Failure {
        Failure { code: error.error_code(), text: error.to_string(), records: error.record_errors().to_vec() }
    }
}

/// Whether an answer is wanted.
pub(super) async fn answer(asked: &Asked<'_>, out: &mut Vec<u8>) -> Result<bool, Closing> {
    let request = Request::decode(asked.body, asked.version)?;
    let mut outcomes = Vec::new();
    let mut produces = Vec::new();
    for topic in &request.topic_data {
        for partition in &topic.partition_data {
            outcomes.push(match check(asked, &request, topic.name, partition.records.unwrap_or_default()) {
                Ok((topic_id, incoming)) => {
                    produces.push((PartitionId { topic_id, partition: partition.index }, incoming));
                    Outcome::Sent(produces.len() - 1)
                }
                Err(failure) => Outcome::Failed(failure),
            });
        }
    }
    let produced = send(asked, produces).await?;
    if request.acks == 0 {
        return Ok(false);
    }
    let mut answers = outcomes.iter().map(|outcome| match outcome {
        Outcome::Failed(failure) => failed(failure),
        Outcome::Sent(number) => match &produced[*number] {
            Ok(at) => PartitionProduceResponse {
                base_offset: at.base.get(),
                log_append_time_ms: at.append_time_ms,
                log_start_offset: at.log_start.get(),
                ..PartitionProduceResponse::default()
            },
            Err(failure) => failed(failure),
        },
    });
    let responses = request
        .topic_data
        .iter()
        .map(|topic| TopicProduceResponse {
            name: topic.name,
            partition_responses: topic
                .partition_data
                .iter()
                .zip(&mut answers)
                .map(|(partition, answer)| PartitionProduceResponse { index: partition.index, ..answer })
                .collect(),
        })
        .collect();
    Response { responses, ..Response::default() }.encode(out, asked.version)?;
    Ok(true)
}

/// Looks at one partition's records, here and not in the broker.
fn check(
    asked: &Asked<'_>,
    request: &Request<'_>,
    topic: &str,
    records: &[u8],
) -> Result<(leftoff_wire::Uuid, Incoming), Failure> {
    if !matches!(request.acks, -1..=1) {
        return Err(Failure::new(ErrorCode::InvalidRequiredAcks, "acks is -1, 0 or 1"));
    }
    if request.transactional_id.is_some() {
        return Err(InvalidBatch::Transactional.into());
    }
    let known = asked.server.store.with_state(|state| {
        state.topic(topic).map(|topic| (topic.topic_id, ProduceRules::of(&topic.settings)))
    });
    let (topic_id, rules) =
        known.ok_or_else(|| Failure::new(ErrorCode::UnknownTopicOrPartition, "no such topic"))?;
    Ok((topic_id, Incoming::check(records.to_vec(), &rules, now())?))
}

async fn send(
    asked: &Asked<'_>,
    produces: Vec<(PartitionId, Incoming)>,
) -> Result<Vec<Result<leftoff_engine::broker::Produced, Failure>>, Closing> {
    let count = produces.len();
    if count == 0 {
        return Ok(Vec::new());
    }
    Ok(match asked.server.ask(Ask::Produce { produces }).await? {
        Reply::Produced(produced) => {
            let failed = |refusal| Failure::new(error_of(&refusal), &refusal.to_string());
            produced.into_iter().map(|one| one.map_err(failed)).collect()
        }
        Reply::Refused(refusal) => {
            (0..count).map(|_| Err(Failure::new(error_of(&refusal), &refusal.to_string()))).collect()
        }
        other => unreachable!("produce is answered with what was produced, not {other:?}"),
    })
}

fn failed(failure: &Failure) -> PartitionProduceResponse<'_> {
    PartitionProduceResponse {
        error_code: failure.code,
        base_offset: -1,
        error_message: Some(&failure.text),
        record_errors: failure
            .records
            .iter()
            .map(|error| BatchIndexAndErrorMessage {
                batch_index: error.index,
                batch_index_error_message: Some(&error.message),
            })
            .collect(),
        ..PartitionProduceResponse::default()
    }
}

pub(super) async fn init_producer_id(asked: &Asked<'_>, out: &mut Vec<u8>) -> Result<(), Closing> {
    use init_producer_id::{Request, Response};
    let request = Request::decode(asked.body, asked.version)?;
    let failed =
        |error: ErrorCode| Response { error_code: error.code(), producer_id: -1, ..Response::default() };
    let response = if request.transactional_id.is_some() {
        failed(ErrorCode::CoordinatorNotAvailable)
    } else {
        match asked.server.ask(Ask::InitProducerId).await? {
            Reply::ProducerId(producer_id) => Response { producer_id, ..Response::default() },
            Reply::Refused(refusal) => failed(error_of(&refusal)),
            other => unreachable!("a producer id is answered with one, not {other:?}"),
        }
    };
    Ok(response.encode(out, asked.version)?)
}
