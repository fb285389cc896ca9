// Starts a run as Agent Chat UI does, answers each question, and prints every event as a line.
// node live_run.js URL GRAPH INPUT ANSWER…
import { Client } from "@langchain/langgraph-sdk/client";

const [url, graph, input, ...answers] = process.argv.slice(2);
const client = new Client({ apiUrl: url });
const { thread_id } = await client.threads.create();
const print = (line) => console.log(JSON.stringify(line));
const sent = [{ input: JSON.parse(input) }];
sent.push(...answers.map((answer) => ({ command: { resume: JSON.parse(answer) } })));

print({ thread_id });
for (const [run, given] of sent.entries()) {
  const events = client.runs.stream(thread_id, graph, {
    ...given,
    streamMode: ["values", "messages-tuple", "updates", "custom"],
    streamSubgraphs: true,
  });
  for await (const { event, data } of events) print({ run, event, data });
}
