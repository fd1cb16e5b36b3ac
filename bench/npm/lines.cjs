// lines.cjs MODULE [NAME] <LINES: each line parsed and validated by standalone code, by the schema
// NAME or the one that its protocol and type name; valid lines go to stdout. "kinds" as NAME prints
// which schema each kind of line meets, and how often it holds.
const fs = require('fs');
const validators = require(require('path').resolve(process.argv[2])).table;
const only = process.argv[3] === 'kinds' ? undefined : process.argv[3];
const seen = process.argv[3] === 'kinds' ? {} : null;
const one = only && validators[only];
if (only && !one) throw new Error(`no schema ${only}`);

function name(m) {
  if (m.msg_id !== undefined) return ['amp', m.type];
  if (m.aop_version !== undefined) return ['aop', m.event ? `event_${m.event}` : m.message_type];
  if (m.protocol === 'aof') return ['aof', m.type];
  if (m.eventId !== undefined) return ['rtp', m.kind];
  return ['sw4rm', m.message_type];
}
// The last word of a name that more than one schema begins with, and the envelope where none does.
const known = new Map();
function find(protocol, type) {
  const word = String(type).toLowerCase().replace(/[.-]/g, '_');
  for (const file of [word, word.replace(/^event_/, ''), `${word}_event`, 'envelope', 'message'])
    if (validators[`${protocol}/${file}`]) return `${protocol}/${file}`;
  throw new Error(`no schema for ${protocol} ${type}`);
}
function validator(m) {
  const [protocol, type] = name(m);
  const key = `${protocol} ${type}`;
  let v = known.get(key);
  if (!v) {
    const file = find(protocol, type);
    v = {check: validators[file], file};
    known.set(key, v);
  }
  if (seen) {
    const s = (seen[key] ??= {file: v.file, lines: 0, valid: 0});
    s.lines++;
    s.valid += v.check(m);
  }
  return v.check;
}

let chunk = Buffer.alloc(1 << 18);
let kept = 0;
let out = '';
let bad = 0;
function judge(line) {
  let good = false;
  try {
    const message = JSON.parse(line);
    good = (one || validator(message))(message);
  } catch (e) {
    if (!(e instanceof SyntaxError)) throw e;
  }
  if (good) out += line + '\n';
  else bad++;
}
function judgeAll(text) {
  let from = 0;
  for (let at; (at = text.indexOf('\n', from)) >= 0; from = at + 1)
    if (at > from) judge(text.slice(from, at));
  if (from < text.length) judge(text.slice(from));
  if (!seen) fs.writeSync(1, out);
  out = '';
}
for (;;) {
  if (kept === chunk.length) chunk = Buffer.concat([chunk, Buffer.alloc(chunk.length)]);
  const n = fs.readSync(0, chunk, kept, chunk.length - kept, null);
  if (n === 0) break;
  const have = kept + n;
  const end = chunk.lastIndexOf(10, have - 1) + 1;
  judgeAll(chunk.toString('utf8', 0, end));
  chunk.copyWithin(0, end, have);
  kept = have - end;
}
judgeAll(chunk.toString('utf8', 0, kept));
if (seen) console.log(JSON.stringify(seen, null, 1));
process.exitCode = bad ? 1 : 0;
