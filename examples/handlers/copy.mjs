// Writes each event's value, a JSON object, to the sink, with leftoff.mjs beside it.
//
//     leftoff run -t flights -g copy --data ./d --out file:copy.ndjson --pipeline 100 -- node examples/handlers/copy.mjs

import { run } from "./leftoff.mjs";

run(async (event) => {
  console.log("copying", event.offset); // goes to stderr
  return { records: [JSON.parse(event.value)] };
});
