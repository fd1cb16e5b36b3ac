// Prints cases for compare.c with ajv's verdicts, one a line: {"s": schema or "amp/x.json",
// "v": [[value, valid], ...]}. First generated schemas with generated values, then the AMP schemas
// with mutated messages (a file of messages is the second argument). usage: cases.js COUNT MESSAGES
"use strict";
const fs = require("fs");
const path = require("path");
const Ajv = require("ajv/dist/2020").default;
const formats = require("ajv-formats");

let seed = 20260226;
function random(n) {
  seed = (Math.imul(seed, 1103515245) + 12345) & 0x7fffffff;
  return (seed >>> 8) % n;
}
const pick = (list) => list[random(list.length)];

const keys = ["a", "b", "c", "dd", "é", "x_1"];
const patterns = ["^a", "b$", "^[a-c]+$", "^x_", "\\d", "."];

function value(depth) {
  switch (random(depth > 0 ? 9 : 6)) {
    case 0:
      return null;
    case 1:
      return random(2) === 0;
    case 2:
      return random(7) - 3;
    case 3:
      return (random(40) - 20) / 4;
    case 4:
      return pick(["", "a", "ab", "abc", "é", "x_1", "\u{1F600}b", "1"]);
    case 5:
      return pick([0, 1, "a"]);
    case 6:
    case 7: {
      const o = {};
      for (let i = random(4); i > 0; i--) o[pick(keys)] = value(depth - 1);
      return o;
    }
    default:
      return Array.from({ length: random(5) }, () => value(depth - 1));
  }
}

const types = ["string", "number", "integer", "object", "array", "null", "boolean"];
const leaves = [
  () => true,
  () => ({}),
  () => ({ type: pick(types) }),
  () => ({ const: value(1) }),
  () => ({ minimum: random(5) - 2 }),
  () => ({ enum: [value(1), value(1)] }),
  () => ({ minLength: random(3) }),
  () => ({ $ref: "#/$defs/r" }),
];
// No unevaluatedItems: ajv 8 settles them while compiling and forgets which branch was taken.
const rules = [
  (s) => (s.type = pick([["string", "null"], "object", "array", "integer", ["array", "object"]])),
  (s, d) => (s.properties = { [pick(keys)]: schema(d), [pick(keys)]: schema(d) }),
  (s) => (s.required = [...new Set([pick(keys), pick(keys)])]),
  (s, d) => (s.additionalProperties = pick([false, schema(d)])),
  (s, d) => (s.patternProperties = { [pick(patterns)]: schema(d) }),
  (s, d) => (s.propertyNames = schema(d)),
  (s) => (s.minProperties = random(3)),
  (s) => (s.maxProperties = random(4)),
  (s) => (s.dependentRequired = { [pick(keys)]: [pick(keys)] }),
  (s, d) => (s.dependentSchemas = { [pick(keys)]: schema(d) }),
  (s, d) => (s.items = schema(d)),
  (s, d) => (s.prefixItems = [schema(d), schema(d)]),
  (s, d) => (s.contains = schema(d)),
  (s, d) => Object.assign(s, { contains: schema(d), minContains: random(3), maxContains: 2 }),
  (s) => (s.minItems = random(3)),
  (s) => (s.maxItems = random(4)),
  (s) => (s.uniqueItems = true),
  (s) => (s.minLength = random(3)),
  (s) => (s.maxLength = random(4)),
  (s) => (s.pattern = pick(patterns)),
  (s) => (s.minimum = random(6) - 3),
  (s) => (s.maximum = random(6) - 3),
  (s) => (s.exclusiveMinimum = (random(6) - 3) / 2),
  (s) => (s.multipleOf = pick([1, 2, 0.5, 0.25, 3])),
  (s, d) => (s.allOf = [schema(d), schema(d)]),
  (s, d) => (s.anyOf = [schema(d), schema(d)]),
  (s, d) => (s.oneOf = [schema(d), schema(d)]),
  (s, d) => (s.not = schema(d)),
  (s, d) => Object.assign(s, { if: schema(d), then: schema(d), else: schema(d) }),
  (s, d) => (s.unevaluatedProperties = pick([false, schema(d)])),
  (s) => (s.const = value(2)),
  (s) => (s.enum = [value(2), value(2), value(1)]),
  (s) => (s.$ref = "#/$defs/r"),
];

function schema(depth) {
  if (depth <= 0) return pick(leaves)();
  const s = {};
  for (let i = 1 + random(4); i > 0; i--) pick(rules)(s, depth - 1);
  // ajv 8 takes an empty array for one that contains something where prefixItems stand beside it.
  if (s.prefixItems) delete s.contains, delete s.minContains, delete s.maxContains;
  return s;
}

function generated(count) {
  const targets = [
    { type: "integer" },
    { properties: { a: true } },
    { minItems: 1, prefixItems: [true] },
    { properties: { b: { type: "string" } }, required: ["b"] },
  ];
  for (let i = 0; i < count; i++) {
    const s = schema(3);
    s.$defs = { r: pick(targets) };
    const values = Array.from({ length: 12 }, () => value(3));
    let v;
    try {
      const valid = new Ajv({ strict: false, logger: false }).compile(s);
      v = values.map((x) => [x, valid(x)]);
    } catch (e) {
      continue; // ajv 8 stumbles over a few nestings of unevaluated*
    }
    console.log(JSON.stringify({ s, v }));
  }
}

// One change somewhere in a message.
function mutate(message) {
  const places = [];
  (function walk(x) {
    for (const k of x && typeof x === "object" ? Object.keys(x) : []) {
      places.push([x, k]);
      walk(x[k]);
    }
  })(message);
  const [parent, key] = pick(places);
  const old = parent[key];
  switch (random(7)) {
    case 0:
      if (Array.isArray(parent)) parent.splice(key, 1);
      else delete parent[key];
      break;
    case 1:
      parent[key] = value(2);
      break;
    case 2:
      if (!Array.isArray(parent)) parent[pick(["note", "x", key + "s"])] = value(1);
      break;
    case 3:
      parent[key] = typeof old === "string" ? old.slice(0, random(old.length + 1)) : [old];
      break;
    case 4:
      parent[key] = typeof old === "number" ? -old - 0.5 : String(old).toUpperCase();
      break;
    case 5:
      if (Array.isArray(old)) parent[key] = [];
      break;
    default:
      parent[key] = pick(["2026-02-30T00:00:00Z", "2026-02-26T14:32:07", "approved", "low", 0]);
  }
}

function messages(file, count) {
  const ajv = new Ajv({ strict: false, logger: false, validateFormats: true });
  formats(ajv, { mode: "full" });
  const compiled = {};
  for (const name of fs.readdirSync("schemas/amp"))
    ajv.addSchema(JSON.parse(fs.readFileSync(path.join("schemas/amp", name))), "x:/amp/" + name);
  const lines = fs.readFileSync(file, "utf8").split("\n").filter(Boolean);
  for (let i = 0; i < count; i++) {
    const line = lines[i % lines.length];
    const name = JSON.parse(line).type + ".json";
    compiled[name] = compiled[name] || ajv.getSchema("x:/amp/" + name);
    const v = [];
    for (let k = 0; k < 8; k++) {
      const m = JSON.parse(line);
      for (let n = random(3); n > 0; n--) mutate(m);
      // ajv-formats takes an offset without minutes for one of RFC 3339.
      if (!/\d[+-]\d\d(\d\d)?"/.test(JSON.stringify(m))) v.push([m, compiled[name](m)]);
    }
    console.log(JSON.stringify({ s: "amp/" + name, v }));
  }
}

const count = Number(process.argv[2]);
generated(count);
messages(process.argv[3], count);
