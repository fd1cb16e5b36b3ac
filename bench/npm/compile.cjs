// compile.cjs OUT SCHEMA_DIR: every schema below the directory compiled by ajv into one module of
// standalone code, by "<protocol>/<name>".
const fs = require('fs');
const path = require('path');
const modules = path.join(process.env.BENCH_NPM, 'node_modules');
const load = (name) => require(path.join(modules, name));
const Ajv = load('ajv/dist/2020').default;
const standalone = load('ajv/dist/standalone').default;
const [out, root] = process.argv.slice(2);

const ajv = new Ajv({code: {source: true}, strict: false, validateSchema: false, allErrors: false});
load('ajv-formats')(ajv);
const names = {};
for (const protocol of fs.readdirSync(root))
  for (const file of fs.readdirSync(path.join(root, protocol))) {
    if (!file.endsWith('.json')) continue;
    const id = `schema:///${protocol}/${file}`;
    const schema = JSON.parse(fs.readFileSync(path.join(root, protocol, file)));
    schema.$id = id;
    ajv.addSchema(schema);
    if (file !== 'common.json') names[`${protocol}/${file.slice(0, -5)}`] = id;
  }
const exported = {};
Object.keys(names).forEach((name, i) => (exported[`v${i}`] = names[name]));
const code = standalone(ajv, exported);
const table = Object.keys(names).map((name, i) => `${JSON.stringify(name)}: exports.v${i}`);
fs.writeFileSync(out, `${code}\nexports.table = {${table.join(',')}};\n`);
