// Values: any, such as a schema describes, and such as a message becomes by a few changes.
"use strict";
const { random, pick } = require("./random.js");

const keys = ["a", "b", "c", "dd", "é", "x_1"];

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

const byFormat = {
  "date-time": "2026-02-26T14:32:07Z",
  date: "2026-02-26",
  time: "14:32:07Z",
  uuid: "6f9619ff-8b86-4d01-b42d-00cf4fc964ff",
  uri: "https://example.org/a?b#c",
  "uri-reference": "../a",
  email: "a@example.org",
  duration: "PT5M",
  hostname: "example.org",
  ipv4: "192.0.2.1",
  ipv6: "2001:db8::1",
  "json-pointer": "/a/0",
  regex: "^a$",
};

// A value that the schema would mostly take. at: the schema's document; find(document, ref) gives
// [document, schema]; words: strings to try on patterns.
class Maker {
  constructor(find, words) {
    this.find = find;
    this.words = words;
  }

  make(at, schema, depth) {
    if (schema === true || schema === undefined) return value(1);
    if (schema === false || depth > 12 || random(60) === 0) return value(1);
    if (schema.$ref) {
      const [doc, target] = this.find(at, schema.$ref);
      const rest = { ...schema };
      delete rest.$ref;
      return target && typeof target === "object"
        ? this.make(doc, { ...target, ...this.plain(rest) }, depth + 1)
        : value(1);
    }
    if ("const" in schema) return schema.const;
    if (schema.enum) return pick(schema.enum);
    let s = schema;
    for (const k of ["anyOf", "oneOf"]) if (s[k]) s = this.merge(at, s, pick(s[k]));
    for (const b of s.allOf || []) s = this.merge(at, s, b);
    const branches = [s, ...(s.allOf || [])].filter((b) => b.if && b.then);
    const branch = branches.length && random(4) && pick(branches);
    if (branch) s = this.merge(at, this.merge(at, s, branch.if), branch.then);
    const types = s.type ? [].concat(s.type) : Object.keys(hints).filter((t) => hints[t].some((k) => k in s));
    const type = types.length ? pick(types) : "any";
    return this["a_" + type] ? this["a_" + type](at, s, depth) : value(1);
  }

  // What of a schema beside a $ref narrows the value.
  plain(s) {
    return Object.fromEntries(Object.entries(s).filter(([k]) => k !== "description" && k !== "$defs"));
  }

  merge(at, a, b) {
    if (typeof b !== "object" || b === null) return a;
    if (b.$ref) [, b] = this.find(at, b.$ref);
    if (typeof b !== "object" || b === null) return a;
    const properties = { ...a.properties };
    for (const [k, v] of Object.entries(b.properties || {}))
      properties[k] =
        typeof properties[k] === "object" && typeof v === "object" ? { ...properties[k], ...v } : v;
    return {
      ...a,
      ...(b.type ? { type: b.type } : {}),
      ...("items" in b ? { items: b.items } : {}),
      ...(Object.keys(properties).length ? { properties } : {}),
      required: [...new Set([...(a.required || []), ...(b.required || [])])],
    };
  }

  a_null() {
    return null;
  }
  a_boolean() {
    return random(2) === 0;
  }
  a_integer(at, s) {
    return Math.round(this.a_number(at, s));
  }
  a_number(at, s) {
    const low = s.minimum ?? (s.exclusiveMinimum !== undefined ? s.exclusiveMinimum + 0.5 : -2);
    // A bound past 2^53 is no number of JavaScript: it and ajv would both read another one.
    const top = Math.min(s.maximum ?? Infinity, Number.MAX_SAFE_INTEGER);
    const high = s.maximum !== undefined ? top : s.exclusiveMaximum !== undefined ? s.exclusiveMaximum - 0.5 : low + 8;
    const n = pick([low, high, Math.ceil(low), low + random(9) / 2, (low + high) / 2]);
    // JavaScript rounds what is beyond 2^53; we do not.
    const exact = Math.max(-Number.MAX_SAFE_INTEGER, Math.min(n, Number.MAX_SAFE_INTEGER));
    return s.multipleOf ? Math.round(exact / s.multipleOf) * s.multipleOf : exact;
  }
  a_string(at, s) {
    if (s.format && byFormat[s.format]) return byFormat[s.format];
    if (s.pattern) {
      const re = new RegExp(s.pattern, "u");
      for (let i = 0; i < 40; i++) {
        const w = pick(this.words);
        if (re.test(w)) return w;
      }
    }
    const n = pick([s.minLength ?? 1, s.maxLength ?? 3, 2]);
    return pick(["a", "b", "é", "1"]).repeat(Math.min(n, 300));
  }
  a_array(at, s, depth) {
    const first = s.prefixItems || (Array.isArray(s.items) ? s.items : []);
    const rest = Array.isArray(s.items) ? s.additionalItems : s.items;
    const n = Math.min((s.minItems ?? 0) + random(3), s.maxItems ?? 9, 20);
    return Array.from({ length: n }, (_, i) => this.make(at, i < first.length ? first[i] : rest ?? s.contains, depth + 1));
  }
  a_object(at, s, depth) {
    const o = {};
    for (const k of s.required || []) if (random(40)) o[k] = undefined;
    for (const k of Object.keys(s.properties || {})) if (random(2)) o[k] = undefined;
    if (random(30) === 0 || !s.properties) o[pick(keys)] = undefined;
    for (const k of Object.keys(o)) {
      const sub = Object.prototype.hasOwnProperty.call(s.properties || {}, k)
        ? s.properties[k]
        : s.additionalProperties === false
          ? undefined
          : s.additionalProperties;
      o[k] = this.make(at, sub, depth + 1);
    }
    return o;
  }
}

const hints = {
  object: ["properties", "required", "additionalProperties", "minProperties", "patternProperties", "dependentRequired"],
  array: ["items", "prefixItems", "contains", "minItems", "uniqueItems"],
  string: ["minLength", "maxLength", "pattern", "format"],
  number: ["minimum", "maximum", "exclusiveMinimum", "multipleOf"],
};

// One change somewhere in a message.
function mutate(message) {
  const places = [];
  (function walk(x) {
    for (const k of x && typeof x === "object" ? Object.keys(x) : []) {
      places.push([x, k]);
      walk(x[k]);
    }
  })(message);
  if (!places.length) return;
  const [parent, key] = pick(places);
  const old = parent[key];
  switch (random(8)) {
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
      parent[key] = typeof old === "string" ? [...old].slice(0, random(old.length + 1)).join("") : [old];
      break;
    case 4:
      parent[key] = typeof old === "number" ? -old - 0.5 : String(old).toUpperCase();
      break;
    case 5:
      if (Array.isArray(old)) parent[key] = [];
      break;
    case 6:
      if (typeof old === "number") parent[key] = old + pick([1, -1, 1000, -1000]);
      else if (typeof old === "string") parent[key] = pick([old + "x", " " + old, old + old, ""]);
      break;
    default:
      parent[key] = pick(["2026-02-30T00:00:00Z", "2026-02-26T14:32:07", "approved", "low", 0, null]);
  }
}

module.exports = { keys, value, Maker, mutate };
