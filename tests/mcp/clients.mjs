// Every tool and resource of amp-mcp through the clients of the official SDK. They check structured content against the
// output schemas by themselves.
import assert from "node:assert";
import { execFileSync, spawn } from "node:child_process";
import { mkdirSync, openSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { Client as Client1 } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport as Stdio1 } from "@modelcontextprotocol/sdk/client/stdio.js";
import {
  ResourceListChangedNotificationSchema,
  ResourceUpdatedNotificationSchema,
} from "@modelcontextprotocol/sdk/types.js";
import { Client as Client2 } from "@modelcontextprotocol/client";
import { StdioClientTransport as Stdio2 } from "@modelcontextprotocol/client/stdio";

const place = process.argv[2];
const state = `${place}/state`;
const env = { ...process.env };
const sh = (file, ...args) =>
  execFileSync(file, args, { env: { ...env, AMP_STATE: state }, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
const server = (agent, more = {}) => ({
  command: "amp-mcp",
  args: agent ? ["--state", state, "--agent", agent] : [],
  env: { ...env, ...more },
  stderr: "ignore",
});
const info = { name: "tests/mcp", version: "1" };
const clients = [];
async function connect(which, options, parameters) {
  const [Client, Transport] = which === 1 ? [Client1, Stdio1] : [Client2, Stdio2];
  const client = new Client(info, options);
  await client.connect(new Transport(parameters));
  clients.push(client);
  return client;
}
const call = async (client, name, args = {}, options) =>
  await (client instanceof Client1
    ? client.callTool({ name, arguments: args }, undefined, options)
    : client.callTool({ name, arguments: args }, options));
const until = async (what, test) => {
  for (let i = 0; i < 500; i++) {
    if (await test()) return;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  assert.fail(`never: ${what}`);
};

let passed = 0, failed = 0;
async function test(name, run) {
  try {
    await run();
    passed++;
  } catch (error) {
    failed++;
    console.log(`not ok: ${name}: ${error.stack}`);
  }
}

for (const a of ["ann", "bob"]) sh("agent-registry", "register", a, "--connector", `ci:${a}`);

// The three ways to speak to it.
const ways = [
  ["SDK 1, the handshake", 1, {}, "2025-11-25"],
  ["SDK 2, the handshake", 2, {}, "2025-11-25"],
  ["SDK 2, without a handshake", 2, { versionNegotiation: { mode: { pin: "2026-07-28" } } }, "2026-07-28"],
  ["SDK 2, which asks first", 2, { versionNegotiation: { mode: "auto" } }, "2026-07-28"],
];
for (const [name, which, options, version] of ways) {
  await test(`${name}: tools`, async () => {
    const ann = await connect(which, options, server("ann"));
    const bob = await connect(which, options, server("bob"));
    if (which === 2) assert.equal(ann.getNegotiatedProtocolVersion(), version);
    assert.equal(ann.getServerVersion().name, "amp-mcp");
    assert.match(ann.getInstructions(), /inbox/);
    const { tools } = await ann.listTools();
    assert.deepEqual(tools.map((t) => t.name), ["inbox", "send", "reply", "progress", "ask_human", "my_task"]);
    for (const t of tools) assert.ok(t.description && t.inputSchema.type === "object" && t.outputSchema.type === "object");
    await bob.listTools(); // for the output schemas

    const sent = await call(ann, "send", { to: "bob", text: `for ${name}`, subject: "work", expects_reply: true });
    assert.equal(sent.structuredContent.delivered, true);
    const got = await call(bob, "inbox", { wait_seconds: 10 });
    assert.equal(got.structuredContent.text, `for ${name}`);
    assert.equal(got.structuredContent.from, "ann");
    const { id } = got.structuredContent;
    assert.equal((await call(bob, "inbox")).structuredContent.found, false);
    const answered = await call(bob, "reply", { id, outcome: "reply", text: "done" });
    assert.equal(answered.structuredContent.outcome, "reply");
    const back = await call(ann, "inbox", { wait_seconds: 10 });
    assert.equal(back.structuredContent.text, "done");
    assert.equal(back.structuredContent.from, "bob");

    // Errors: of the tool, which the model reads; of the request.
    for (const [tool, args, code] of [
      ["send", { to: "nobody", text: "x" }, "invalid_targets"],
      ["send", { to: "bob", text: "x", from: "admin" }, "bad_arguments"],
      ["reply", { id: "no-such-id", outcome: "complete" }, "unknown_ref"],
      ["progress", { id: "no-such-id", text: "x" }, "unknown_ref"],
      ["my_task", {}, "no_task"],
      ["my_task", { task_id: "T-2026-999" }, "unknown_task"],
    ]) {
      const refused = await call(ann, tool, args);
      assert.equal(refused.isError, true, tool);
      assert.match(refused.content[0].text, new RegExp(`^${code}: `));
    }
    await assert.rejects(call(ann, "no_such_tool"), (e) => e.code === -32602);
  });

  await test(`${name}: a person`, async () => {
    const client = clients.at(-2);
    const seen = [];
    const asked = call(client, "ask_human", { question: "Go on?" }, { onprogress: (p) => seen.push(p) });
    await until("progress", () => seen.length > 0);
    const question = /question (\S+)/.exec(seen[0].message)[1];
    sh("hitl-prompt", "answer", question, "approve", "yes, on");
    const answer = (await asked).structuredContent;
    assert.equal(answer.answered, true);
    assert.equal(answer.decision, "approve");
    assert.equal(answer.note, "yes, on");

    const stop = new AbortController();
    const again = [];
    const cancelled = call(client, "ask_human", { question: "Push?" },
      { signal: stop.signal, onprogress: (p) => again.push(p) });
    await until("progress", () => again.length > 0);
    stop.abort("not needed");
    await assert.rejects(cancelled);
    await until("the question ends", async () => {
      try {
        sh("hitl-prompt", "answer", /question (\S+)/.exec(again[0].message)[1], "approve");
        return assert.fail("it was answered");
      } catch (error) {
        return error.status === 1;
      }
    });
    assert.equal((await call(client, "ask_human", { question: "Now?", timeout_seconds: 1 })).structuredContent.answered, false);
  });

  await test(`${name}: resources`, async () => {
    const [client, other] = clients.slice(-2);
    const { resources } = await client.listResources();
    assert.deepEqual(resources.map((r) => r.uri), ["amp://task", "amp://inbox"]);
    assert.equal((await client.listResourceTemplates()).resourceTemplates[0].uriTemplate, "amp://task/{task_id}");
    const inbox = await client.readResource({ uri: "amp://inbox" });
    assert.deepEqual(JSON.parse(inbox.contents[0].text), { agent: "ann", waiting: [] });
    await assert.rejects(client.readResource({ uri: "amp://no-such" }));

    const updated = [];
    if (version === "2026-07-28") {
      client.setNotificationHandler("notifications/resources/updated", (n) => { updated.push(n.params.uri); });
      const stream = await client.listen({ resourceSubscriptions: ["amp://inbox"] });
      await call(other, "send", { to: "ann", text: "look" });
      await until("an update", () => updated.length > 0);
      await stream.close?.();
    } else {
      if (which === 1) client.setNotificationHandler(ResourceUpdatedNotificationSchema, (n) => { updated.push(n.params.uri); });
      else client.setNotificationHandler("notifications/resources/updated", (n) => { updated.push(n.params.uri); });
      await client.subscribeResource({ uri: "amp://inbox" });
      await call(other, "send", { to: "ann", text: "look" });
      await until("an update", () => updated.length > 0);
      await client.unsubscribeResource({ uri: "amp://inbox" });
      await client.ping();
      await client.setLoggingLevel("debug");
    }
    assert.equal(updated[0], "amp://inbox");
    assert.equal((await call(client, "inbox")).structuredContent.text, "look");
  });
}

// Inside of an attempt; this test is the worker at the other end of the control FIFO.
for (const role of ["executor", "reviewer"])
  await test(`an attempt of a ${role}`, async () => {
    const dir = `${place}/${role}`;
    mkdirSync(dir);
    execFileSync("mkfifo", [`${dir}/control`]);
    // A read of a FIFO would hold up the end of this process.
    const reader = spawn("cat", { stdio: [openSync(`${dir}/control`, "r+"), "pipe", "inherit"] });
    const asked = [];
    const answer = (id, members) => {
      writeFileSync(`${dir}/new`, JSON.stringify({ id, ok: true, ...members }));
      renameSync(`${dir}/new`, `${dir}/answer-${id}.json`);
    };
    reader.stdout.on("data", (text) => {
      for (const line of `${text}`.trim().split("\n")) {
        const request = JSON.parse(line);
        asked.push(request);
        if (request.type === "inbox") answer(request.id, { inbox: [] });
        else if (request.type === "task")
          answer(request.id, { task: { parts: [{ id: "S1", verdict: "rejected", verdict_ref: "v1" }], issues: [] } });
        else if (request.type === "question")
          answer(request.id, { escalation: "e1", decision: "resume", note: request.suggestions[0] });
        else answer(request.id, {});
      }
    });
    const dispatch = { payload: { description: "Say hello", subtasks: [{ subtask_id: "S1", description: "Write it" }] } };
    writeFileSync(`${dir}/message.json`, JSON.stringify(dispatch));
    writeFileSync(`${dir}/context.json`, JSON.stringify({ dispatch, result: {} }));
    writeFileSync(`${dir}/criteria.json`, '["it works"]');
    writeFileSync(`${dir}/diff`, "+\xff");
    const more = {
      AMP_AGENT: role, AMP_ROLE: role, AMP_CONTROL: `${dir}/control`, AMP_RESULT: `${dir}/result.json`,
      AMP_MESSAGE: `${dir}/message.json`, AMP_CRITERIA: `${dir}/criteria.json`, AMP_TASK_ID: "T-2026-001",
      AMP_SUBTASK_ID: "S1", AMP_ATTEMPT: "1", AMP_WORK_LOG: `${dir}/log`,
      ...(role === "reviewer" ? { AMP_CONTEXT: `${dir}/context.json`, AMP_DIFF: `${dir}/diff` } : {}),
    };
    const client = await connect(1, {}, { ...server(null, more), cwd: place });
    let changes = 0;
    client.setNotificationHandler(ResourceListChangedNotificationSchema, () => { changes++; });
    const { tools } = await client.listTools();
    assert.deepEqual(tools.map((t) => t.name), ["inbox", "reply", "progress", "ask_human", "my_task"]);
    const task = (await call(client, "my_task")).structuredContent;
    assert.equal(task.description, "Say hello");
    assert.equal(task.subtask, "Write it");
    assert.deepEqual(task.criteria, ["it works"]);
    assert.equal((await call(client, "progress", { text: "half", percent: 50 })).structuredContent.recorded, true);
    assert.equal((await call(client, "inbox")).structuredContent.found, false);
    const decided = await call(client, "ask_human", { question: "Which?", choices: ["this one"] });
    assert.deepEqual(decided.structuredContent, { answered: true, question: "e1", decision: "resume", note: "this one" });
    const refused = await call(client, "send", { to: "bob", text: "x" });
    assert.match(refused.content[0].text, /^permission_denied: /);

    const listed = (await client.listResources()).resources.map((r) => r.uri);
    assert.ok(!listed.includes("amp://attempt/result"));
    for (const uri of listed) assert.equal((await client.readResource({ uri })).contents[0].uri, uri);
    if (role === "reviewer")
      assert.ok((await client.readResource({ uri: "amp://attempt/diff" })).contents[0].text);
    const answers = role === "executor"
      ? [{ outcome: "complete", criteria_met: [true, null], notes: ["ran it"] }, "completion_status", "complete"]
      : [{ decision: "rejected", confidence: 0.9, criteria_results: [{ criterion: "it works", passed: false }],
          issues: [{ severity: "major", description: "it does not" }] }, "decision", "rejected"];
    assert.equal((await call(client, "reply", answers[0])).structuredContent.written, true);
    assert.equal(JSON.parse(readFileSync(`${dir}/result.json`, "utf8"))[answers[1]], answers[2]);
    await until("the list changes", () => changes > 0);
    assert.deepEqual(asked.map((a) => a.type).filter((t) => t !== "task"), ["progress", "inbox", "question"]);
    reader.kill();
  });

await Promise.all(clients.map((c) => c.close()));
console.log(`${passed} passed, ${failed} failed, 0 skipped`);
process.exit(failed ? 1 : 0);
