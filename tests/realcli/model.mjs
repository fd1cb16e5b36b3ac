// A model server for tests: Anthropic Messages, OpenAI Responses and Chat Completions, Gemini.
//
//   node model.mjs SCRIPT LOG >PORT
//
// It listens on a free port of the loopback interface and prints it. What the model does is in SCRIPT, which is read
// anew for each request, a JSON list of scenes:
//   {"when": "REGEX", "steps": [STEP...]}
// The scene is the first one whose regex matches the newest message of the user that any scene matches; the step is
// the one after as many tool calls as follow this message, so the server keeps no state. A step is one of
//   {"run": "COMMAND"}                     a call of the shell tool
//   {"write": "PATH", "text": "TEXT"}      a call of the tool that writes files
//   {"tool": "NAME", "input": {…}}         a call of the tool whose name ends with NAME
//   {"say": "TEXT" or an object}           the end of the turn
//   {"fail": 429, "body": {…}, "headers": {…}}   an error of the API
//   {"hang": true}                         no answer
// Without a scene, and to a request without tools (a title, a summary), the model says "ok".
// LOG gets a line for each request: api, path, scene, step, prompt, tools, results (what the calls of the scene gave).
import fs from "node:fs";
import http from "node:http";
import https from "node:https";

const [script, log, key, cert] = process.argv.slice(2);
const usage = { input: 1000, output: 10 };
let made = 0;
const fresh = (prefix) => `${prefix}_${process.pid}_${++made}`;
const text_of = (content) =>
  typeof content === "string"
    ? content
    : (Array.isArray(content) ? content : [content])
        .map((c) => c?.text ?? (c?.output ? text_of(c.output) : c?.content ? text_of(c.content) : ""))
        .join("\n");

// ---- one API each: `read` gives messages {user: TEXT}, {call: NAME} and {result: TEXT}, and the tools; `answer`
// ---- writes the events of a text or of a call {name, input}.

const anthropic = {
  path: /\/v1\/messages$/,
  read: (b) => ({
    tools: (b.tools ?? []).map((t) => ({ name: t.name, properties: t.input_schema?.properties })),
    messages: b.messages.flatMap((m) =>
      (typeof m.content === "string" ? [{ type: "text", text: m.content }] : m.content).flatMap((c) =>
        c.type === "tool_use"
          ? [{ call: c.name }]
          : c.type === "tool_result"
            ? [{ result: text_of(c.content) }]
            : c.type === "text" && m.role === "user"
              ? [{ user: c.text }]
              : [],
      ),
    ),
  }),
  answer: (b, say, call) => {
    const block = call
      ? { type: "tool_use", id: fresh("toolu"), name: call.name, input: {} }
      : { type: "text", text: "" };
    const counted = { input_tokens: usage.input, output_tokens: usage.output };
    const message = { id: fresh("msg"), type: "message", role: "assistant", model: b.model, stop_sequence: null };
    const reason = call ? "tool_use" : "end_turn";
    if (!b.stream)
      return { ...message, content: [call ? { ...block, input: call.input } : { ...block, text: say }], stop_reason: reason, usage: counted };
    const delta = call
      ? { type: "input_json_delta", partial_json: JSON.stringify(call.input) }
      : { type: "text_delta", text: say };
    return [
      { type: "message_start", message: { ...message, content: [], stop_reason: null, usage: { ...counted, output_tokens: 1 } } },
      { type: "content_block_start", index: 0, content_block: block },
      { type: "content_block_delta", index: 0, delta },
      { type: "content_block_stop", index: 0 },
      { type: "message_delta", delta: { stop_reason: reason, stop_sequence: null }, usage: { output_tokens: usage.output } },
      { type: "message_stop" },
    ];
  },
  event: (e) => `event: ${e.type}\ndata: ${JSON.stringify(e)}\n\n`,
};

const responses = {
  path: /\/responses$/,
  read: (b) => ({
    // Tools that were searched for are those of the search's result.
    tools: [...(b.tools ?? []), ...[b.input].flat().flatMap((m) => m.tools ?? [])].flatMap((t) =>
      t.type === "namespace"
        ? t.tools.map((s) => ({ name: s.name, namespace: t.name, properties: s.parameters?.properties }))
        : [{ name: t.name ?? t.type, custom: t.type === "custom", properties: t.parameters?.properties }],
    ),
    messages: (typeof b.input === "string" ? [{ role: "user", content: b.input }] : b.input).flatMap((m) =>
      /_call$/.test(m.type ?? "")
        ? [{ call: m.name ?? m.type }]
        : /_output$/.test(m.type ?? "")
          ? [{ result: text_of(m.output ?? m.tools) }]
          : m.role === "user"
            ? [{ user: text_of(m.content) }]
            : [],
    ),
  }),
  answer: (b, say, call) => {
    const id = fresh("resp");
    const item = !call
      ? { type: "message", id: fresh("msg"), role: "assistant", status: "completed", content: [{ type: "output_text", text: say, annotations: [] }] }
      : call.name === "tool_search"
        ? { type: "tool_search_call", id: fresh("tsc"), call_id: fresh("call"), execution: "client", arguments: call.input, status: "completed" }
      : call.custom
        ? { type: "custom_tool_call", id: fresh("ctc"), call_id: fresh("call"), name: call.name, input: call.input, status: "completed" }
        : {
            type: "function_call", id: fresh("fc"), call_id: fresh("call"), name: call.name,
            ...(call.namespace && { namespace: call.namespace }),
            arguments: JSON.stringify(call.input), status: "completed",
          };
    const done = {
      id, object: "response", model: b.model, status: "completed", output: [item],
      usage: {
        input_tokens: usage.input, input_tokens_details: { cached_tokens: 0 },
        output_tokens: usage.output, output_tokens_details: { reasoning_tokens: 0 },
        total_tokens: usage.input + usage.output,
      },
    };
    if (!b.stream) return done;
    const begun = call ? item : { ...item, status: "in_progress", content: [] };
    return [
      { type: "response.created", response: { ...done, status: "in_progress", output: [], usage: null } },
      { type: "response.output_item.added", output_index: 0, item: begun },
      ...(call ? [] : [{ type: "response.output_text.delta", item_id: item.id, output_index: 0, content_index: 0, delta: say }]),
      { type: "response.output_item.done", output_index: 0, item },
      { type: "response.completed", response: done },
    ];
  },
  event: (e) => `event: ${e.type}\ndata: ${JSON.stringify(e)}\n\n`,
};

const chat = {
  path: /\/chat\/completions$/,
  read: (b) => ({
    tools: (b.tools ?? []).map((t) => ({ name: t.function.name, properties: t.function.parameters?.properties })),
    messages: b.messages.flatMap((m) =>
      m.role === "user"
        ? [{ user: text_of(m.content) }]
        : m.role === "tool"
          ? [{ result: text_of(m.content) }]
          : (m.tool_calls ?? []).map((c) => ({ call: c.function.name })),
    ),
  }),
  answer: (b, say, call) => {
    const message = { role: "assistant", content: call ? null : say };
    if (call)
      message.tool_calls = [
        { index: 0, id: fresh("call"), type: "function", function: { name: call.name, arguments: JSON.stringify(call.input) } },
      ];
    const finish_reason = call ? "tool_calls" : "stop";
    const counted = {
      prompt_tokens: usage.input, completion_tokens: usage.output, total_tokens: usage.input + usage.output,
    };
    const base = { id: fresh("chatcmpl"), created: 1, model: b.model };
    if (!b.stream)
      return { ...base, object: "chat.completion", choices: [{ index: 0, message, finish_reason }], usage: counted };
    const chunk = (choices, more) => ({ ...base, object: "chat.completion.chunk", choices, ...more });
    return [
      chunk([{ index: 0, delta: message, finish_reason: null }]),
      chunk([{ index: 0, delta: {}, finish_reason }]),
      chunk([], { usage: counted }),
      "[DONE]",
    ];
  },
  event: (e) => `data: ${typeof e === "string" ? e : JSON.stringify(e)}\n\n`,
};

const gemini = {
  path: /:(streamG|g)enerateContent$/,
  read: (b) => ({
    tools: (b.tools ?? []).flatMap((t) =>
      (t.functionDeclarations ?? []).map((f) => ({ name: f.name, properties: (f.parametersJsonSchema ?? f.parameters)?.properties })),
    ),
    messages: b.contents.flatMap((m) =>
      m.parts.flatMap((p) =>
        p.functionCall
          ? [{ call: p.functionCall.name }]
          : p.functionResponse
            ? [{ result: JSON.stringify(p.functionResponse.response) }]
            : m.role === "user" && p.text
              ? [{ user: p.text }]
              : [],
      ),
    ),
  }),
  answer: (b, say, call, path) => {
    const part = call ? { functionCall: { name: call.name, args: call.input } } : { text: say };
    const whole = {
      candidates: [{ index: 0, content: { role: "model", parts: [part] }, finishReason: "STOP" }],
      usageMetadata: {
        promptTokenCount: usage.input, candidatesTokenCount: usage.output,
        totalTokenCount: usage.input + usage.output,
      },
    };
    return path.endsWith(":streamGenerateContent") ? [whole] : whole;
  },
  event: (e) => `data: ${JSON.stringify(e)}\r\n\r\n`,
};

// ---- the script ----

const shells = /^(Bash|exec_command|shell|shell_command|local_shell|run_shell_command|bash)$/;
const writers = /^(Write|write_file|write)$/;

function call_of(step, tools) {
  const find = (test) => tools.find((t) => test(t.name) || (t.namespace && test(`${t.namespace}__${t.name}`)));
  if (step.run !== undefined) {
    const tool = find((n) => shells.test(n));
    const input = { [tool?.properties?.cmd ? "cmd" : "command"]: step.run };
    if (tool?.properties?.description) input.description = "a step of a test";
    if (tool?.properties?.is_background) input.is_background = false;
    return { ...tool, input };
  }
  if (step.write !== undefined) {
    const patch = find((n) => n === "apply_patch");
    const lines = step.text.replace(/\n$/, "").split("\n").map((l) => `+${l}\n`).join("");
    const input = `*** Begin Patch\n*** Add File: ${step.write}\n${lines}*** End Patch\n`;
    if (patch) return { ...patch, input: patch.custom ? input : { input } };
    const tool = find((n) => writers.test(n));
    return { ...tool, input: { [tool?.properties?.filePath ? "filePath" : "file_path"]: step.write, content: step.text } };
  }
  const tool = find((n) => n.endsWith(step.tool)) ?? { name: step.tool };
  return { ...tool, input: step.input ?? {} };
}

function step_of(messages) {
  const scenes = JSON.parse(fs.readFileSync(script, "utf8"));
  for (let i = messages.length - 1; i >= 0; i--) {
    const scene = messages[i].user !== undefined && scenes.findIndex((s) => new RegExp(s.when).test(messages[i].user));
    if (scene === false || scene < 0) continue;
    const after = messages.slice(i + 1);
    const steps = scenes[scene].steps;
    const n = Math.min(after.filter((m) => m.call).length, steps.length - 1);
    return {
      scene: scenes[scene].when, n, step: steps[n], prompt: messages[i].user,
      results: after.flatMap((m) => (m.result === undefined ? [] : [m.result])),
    };
  }
  return { step: { say: "ok" } };
}

function answer(request, response, body) {
  const path = new URL(request.url, "http://x").pathname;
  const name = Object.keys(apis).find((a) => apis[a].path.test(path));
  const note = (more) => fs.appendFileSync(log, `${JSON.stringify({ api: name, path, ...more })}\n`);
  const json = (status, value, headers) => {
    response.writeHead(status, { "content-type": "application/json", ...headers });
    response.end(JSON.stringify(value));
  };
  if (!name || request.method !== "POST") {
    note({ ignored: true });
    return /:countTokens$|\/count_tokens$/.test(path)
      ? json(200, { totalTokens: 1, input_tokens: 1 })
      : json(404, { error: { type: "not_found_error", message: `no ${path} here` } });
  }
  const api = apis[name];
  const asked = JSON.parse(body);
  const { tools, messages } = api.read(asked);
  const now = tools.length > 0 ? step_of(messages) : { step: { say: "ok" } };
  const step = now.step;
  note({ scene: now.scene, step: now.n, prompt: now.prompt, results: now.results, tools: tools.map((t) => t.name) });
  if (step.hang) return;
  if (step.fail) return json(step.fail, step.body, step.headers);
  const said = typeof step.say === "object" ? JSON.stringify(step.say) : step.say;
  const events = api.answer(asked, said, step.say === undefined ? call_of(step, tools) : undefined, path);
  if (!Array.isArray(events)) return json(200, events);
  response.writeHead(200, { "content-type": "text/event-stream" });
  for (const e of events) response.write(api.event(e));
  response.end();
}

const apis = { anthropic, responses, chat, gemini };
const serve = (request, response) => {
  let body = "";
  request.setEncoding("utf8");
  request.on("data", (d) => (body += d));
  request.on("end", () => {
    try {
      answer(request, response, body);
    } catch (e) {
      fs.appendFileSync(log, `${JSON.stringify({ error: String(e.stack) })}\n`);
      response.destroy();
    }
  });
};
const server = key ? https.createServer({ key: fs.readFileSync(key), cert: fs.readFileSync(cert) }, serve) : http.createServer(serve);
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
