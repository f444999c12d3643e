// What a handler for Node needs, in a few lines: copy this file beside yours.
//
//     import { run } from "./leftoff.mjs";
//     run(async (event) => ({ records: [event.value] }));
//
// The function gets each event and returns nothing (handled), or an object with `records`, with `filtered`, or with `error` and
// perhaps `retry`. What it throws is an error. With --pipeline the events that are there are handled at the same time. It works
// with --protocol-fd as it is; what is logged goes to stderr either way.

import { writeSync } from "node:fs";
import { createInterface } from "node:readline";

export function run(handle) {
  const fd = Number(process.env.LEFTOFF_FD ?? 1);
  // console.log must not get among the answers.
  process.stdout.write = process.stderr.write.bind(process.stderr);
  const lines = createInterface({ input: process.stdin, crlfDelay: Infinity });
  lines.on("line", async (line) => {
    const message = JSON.parse(line);
    if (message.stop) lines.close();
    if (message.id === undefined) return; // the hello
    let answer;
    try {
      answer = await handle(message);
    } catch (error) {
      console.error(error);
      answer = { error: String(error) };
    }
    send(fd, JSON.stringify({ ...answer, id: message.id }) + "\n");
  });
}

function send(fd, text) {
  for (let bytes = Buffer.from(text); bytes.length > 0; ) {
    try {
      bytes = bytes.subarray(writeSync(fd, bytes));
    } catch (error) {
      if (error.code !== "EAGAIN") throw error;
    }
  }
}
