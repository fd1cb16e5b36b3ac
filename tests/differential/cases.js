// Prints cases for compare.c with ajv's verdicts, one schema a line:
//
//   {"group": "…", "s": schema or "amp/task_dispatch.json", "draft": 7?, "v": [[value, valid], …]}
//
// Made-up schemas of both drafts with values made for them; then our own schema files with the
// messages of tests/fixture/protocols, with values made for the schemas, and with both changed.
// usage: cases.js COUNT SEED; without SEED the cases are always the same. Says on standard error
// what was left out, and why.
"use strict";
const fs = require("fs");
const path = require("path");
const Ajv7 = require("ajv").default;
const Ajv2020 = require("ajv/dist/2020").default;
const formats = require("ajv-formats");
const { seed, random, pick } = require("./random.js");
const { value, Maker, mutate } = require("./values.js");
const { schema } = require("./schemas.js");

const left = {};
const leave = (why) => (left[why] = (left[why] || 0) + 1);
const options = { strict: false, logger: false };

// The schema that a reference inside a generated document names.
function inside(doc, ref) {
  const defs = doc.$defs || doc.definitions;
  return [doc, ref === "#named" ? defs.n : defs.r];
}

function generated(draft, count, careful) {
  const words = ["", "a", "ab", "b", "abc", "x_1", "1", "é"];
  for (let i = 0; i < count; i++) {
    const s = schema(draft, careful);
    const maker = new Maker(inside, words);
    const values = Array.from({ length: 24 }, (_, k) => {
      const v = k % 4 === 0 ? value(3) : maker.make(s, s, 0);
      if (random(3) === 0) mutate(v);
      return v === undefined ? null : v;
    });
    try {
      const ajv = draft === 7 ? new Ajv7({ ...options, ignoreKeywordsWithRef: true }) : new Ajv2020(options);
      const valid = ajv.compile(s);
      // Through JSON, as we get it: -0 and undefined are gone.
      const v = values.map((x) => JSON.parse(JSON.stringify(x))).map((x) => [x, valid(x)]);
      console.log(JSON.stringify({ group: "made-up " + (draft === 7 ? "draft-07" : "2020-12"), s, ...(draft === 7 ? { draft } : {}), v }));
    } catch (e) {
      leave("schemas that ajv cannot compile (nested unevaluatedProperties)");
    }
  }
}

// The messages of a protocol's cases.
function messages(protocol) {
  const file = path.join("tests/fixture/protocols", protocol + ".jsonl");
  if (!fs.existsSync(file)) return [];
  const all = fs
    .readFileSync(file, "utf8")
    .split("\n")
    .filter(Boolean)
    .map((l) => JSON.parse(l).line)
    .filter((m) => m && typeof m === "object" && !Array.isArray(m));
  return all.length > 60 ? all.filter((_, i) => i % Math.ceil(all.length / 60) === 0) : all;
}

function strings(x, into) {
  if (typeof x === "string") into.add(x);
  else if (x && typeof x === "object") for (const k of Object.keys(x)) strings(x[k], into);
  return into;
}

// What ajv-formats takes for RFC 3339 and is not: an offset without minutes.
const lax = (m) => /\d[+-]\d\d(\d\d)?"/.test(JSON.stringify(m));

// What JavaScript rounds: it checks another number than the one that it prints.
function rounded(x) {
  if (typeof x === "number") return Math.abs(x) > Number.MAX_SAFE_INTEGER;
  return x !== null && typeof x === "object" && Object.values(x).some(rounded);
}

function ours(protocol, count) {
  const dir = path.join("schemas", protocol);
  const docs = {};
  const ajv = new Ajv2020({ ...options, validateFormats: true });
  formats(ajv, { mode: "full" });
  for (const name of fs.readdirSync(dir)) {
    docs[name] = JSON.parse(fs.readFileSync(path.join(dir, name)));
    ajv.addSchema(docs[name], `x:/${protocol}/${name}`);
  }
  const find = (at, ref) => {
    const [file, fragment] = ref.split("#");
    const name = file ? path.basename(file) : at;
    const doc = docs[name] || {};
    return [name, (fragment || "").split("/").slice(1).reduce((x, k) => (x || {})[k], doc)];
  };
  const known = messages(protocol);
  const maker = new Maker(find, [...strings(known, new Set(["a", "T-2026-044", "a3f8d21", "2.0.2-C"]))]);
  const names = Object.keys(docs).filter((n) => n !== "common.json");
  for (const name of names) {
    const valid = ajv.getSchema(`x:/${protocol}/${name}`);
    const fitting = known.filter((m) => valid(m));
    const v = [];
    for (let k = Math.ceil(count / names.length); k > 0; k--) {
      const m = fitting.length && random(2) ? JSON.parse(JSON.stringify(pick(fitting))) : random(20) && maker.make(name, docs[name], 0);
      const x = m || (known.length ? JSON.parse(JSON.stringify(pick(known))) : value(2));
      for (let n = random(3); n > 0; n--) mutate(x);
      const y = JSON.parse(JSON.stringify(x));
      if (rounded(y)) leave("numbers beyond 2^53, which JavaScript rounds");
      else if (lax(y)) leave("times with an offset without minutes, which ajv-formats takes");
      else v.push([y, valid(y)]);
    }
    console.log(JSON.stringify({ group: protocol, s: `${protocol}/${name}`, v }));
  }
}

const count = Number(process.argv[2]);
const given = process.argv[3];
seed(given ? Number(given) : 20260226);
generated(2020, count, Boolean(given));
generated(7, Math.ceil(count / 2), Boolean(given));
for (const p of ["amp", "sw4rm", "aop", "aof", "rtp"]) ours(p, 8 * count);
for (const [why, n] of Object.entries(left)) console.error(`left out: ${n} ${why}`);
