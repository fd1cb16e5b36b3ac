// Schemas made up at random, of draft 2020-12 and of draft-07. What ajv 8 itself gets wrong is not
// made; each such place says so.
"use strict";
const { random, pick } = require("./random.js");
const { keys, value } = require("./values.js");

const patterns = ["^a", "b$", "^[a-c]+$", "^x_", "\\d", "."];
const types = ["string", "number", "integer", "object", "array", "null", "boolean"];

const leaves = [
  () => true,
  () => false,
  () => ({}),
  () => ({ type: pick(types) }),
  () => ({ const: value(1) }),
  () => ({ minimum: random(5) - 2 }),
  () => ({ enum: [value(1), value(1)] }),
  () => ({ minLength: random(3) }),
];

const common = [
  (s) => (s.type = pick([["string", "null"], "object", "array", "integer", ["array", "object"]])),
  (s, f) => (s.properties = { [pick(keys)]: f(), [pick(keys)]: f() }),
  (s) => (s.required = [...new Set([pick(keys), pick(keys)])]),
  (s, f) => (s.additionalProperties = pick([false, f()])),
  (s, f) => (s.patternProperties = { [pick(patterns)]: f() }),
  (s, f) => (s.propertyNames = f()),
  (s) => (s.minProperties = random(3)),
  (s) => (s.maxProperties = random(4)),
  (s, f) => (s.items = f()),
  (s, f) => (s.contains = f()),
  (s) => (s.minItems = random(3)),
  (s) => (s.maxItems = random(4)),
  (s) => (s.uniqueItems = true),
  (s) => (s.minLength = random(3)),
  (s) => (s.maxLength = random(4)),
  (s) => (s.pattern = pick(patterns)),
  (s) => (s.minimum = random(6) - 3),
  (s) => (s.maximum = random(6) - 3),
  (s) => (s.exclusiveMinimum = (random(6) - 3) / 2),
  (s) => (s.exclusiveMaximum = (random(6) - 1) / 2),
  // Binary fractions: ajv divides floating-point numbers, we compare decimals.
  (s) => (s.multipleOf = pick([1, 2, 0.5, 0.25, 3])),
  (s, f) => (s.allOf = [f(), f()]),
  (s, f) => (s.anyOf = [f(), f()]),
  (s, f) => (s.oneOf = [f(), f()]),
  (s, f) => (s.not = f()),
  (s, f) => Object.assign(s, { if: f(), then: f(), else: f() }),
  (s) => (s.const = value(2)),
  (s) => (s.enum = [value(2), value(2), value(1)]),
];

const drafts = {
  2020: {
    definitions: "$defs",
    refs: ["#/$defs/r", "#/$defs/r", "#named"],
    rules: [
      (s) => (s.dependentRequired = { [pick(keys)]: [pick(keys)] }),
      (s, f) => (s.dependentSchemas = { [pick(keys)]: f() }),
      (s, f) => (s.prefixItems = [f(), f()]),
      (s, f) => Object.assign(s, { contains: f(), minContains: random(3), maxContains: 2 }),
      (s, f) => (s.unevaluatedProperties = pick([false, f()])),
      (s, f) => (s.unevaluatedItems = pick([false, f()])),
    ],
  },
  7: {
    definitions: "definitions",
    refs: ["#/definitions/r", "#/definitions/r", "#named"],
    rules: [
      (s, f) => (s.dependencies = { [pick(keys)]: pick([[pick(keys)], f()]) }),
      (s, f) => (s.items = [f(), f()]),
      (s, f) => Object.assign(s, { items: [f()], additionalItems: pick([false, f()]) }),
    ],
  },
};

const targets = [
  { type: "integer" },
  { properties: { a: true } },
  { minItems: 1 },
  { properties: { b: { type: "string" } }, required: ["b"] },
  { type: ["object", "array", "string"], minLength: 1 },
];

// A schema of the draft. careful: nothing that ajv gets wrong once in tens of thousands of cases.
function schema(draft, careful) {
  const d = drafts[draft];
  const rules = [...common, ...d.rules, (s) => (s.$ref = pick(d.refs))];
  const sub = (depth) => {
    if (depth <= 0) return random(8) ? pick(leaves)() : { $ref: pick(d.refs) };
    const s = {};
    for (let i = 1 + random(4); i > 0; i--) pick(rules)(s, () => sub(depth - 1));
    // ajv takes an empty array for what it answered last, in a loop or after prefixItems.
    if ("contains" in s && s.minContains !== 0) s.minItems = Math.max(s.minItems || 1, 1);
    // ajv takes anything for an array that contains at least two of nothing.
    if (s.contains === false) delete s.contains, delete s.minContains, delete s.maxContains;
    // Told to ignore what stands beside a $ref, ajv still looks at the type.
    if (draft === 7 && "$ref" in s) delete s.type;
    // ajv settles while compiling which items are evaluated, whatever branch is taken then, and
    // forgets what a branch evaluated that failed.
    const branches = ["anyOf", "oneOf", "not", "if", "allOf", "$ref", "dependentSchemas"].some((k) => k in s);
    if (branches || "contains" in s) delete s.unevaluatedItems;
    if (branches && careful) delete s.unevaluatedProperties;
    return s;
  };
  const s = sub(3);
  s[d.definitions] = {
    r: pick(targets),
    n: { ...pick(targets), ...(draft === 7 ? { $id: "#named" } : { $anchor: "named" }) },
  };
  return s;
}

module.exports = { schema };
