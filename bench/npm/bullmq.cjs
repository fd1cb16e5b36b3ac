// The parts of bench/peers.sh for BullMQ: as in bench/peers.c.
//
// node bullmq.cjs put ACKED FROM TO PAUSE_MS BATCH SOCKET: adds jobs, BATCH of them with one addBulk.
// node bullmq.cjs work LIST CONCURRENCY SOCKET: does them.
//
// A job has its number as its jobId, so a put that is repeated adds nothing.
'use strict';
const fs = require('fs');
const path = require('path');
const { Queue, Worker } = require(path.join(process.env.BENCH_NPM, 'node_modules', 'bullmq'));

const [what, list, ...args] = process.argv.slice(2);
const fd = fs.openSync(list, 'a', 0o600);
const now = () => process.hrtime.bigint();
const pause = (ms) => new Promise((done) => setTimeout(done, ms));
const connection = (file) => ({ path: file, maxRetriesPerRequest: null, retryStrategy: () => 20 });

async function put(from, to, pauseMs, batch, file) {
  const queue = new Queue('bench', { connection: connection(file) });
  queue.on('error', () => {});
  for (let i = from; i <= to; i += batch) {
    const jobs = [];
    for (let k = i; k < i + batch && k <= to; k++) jobs.push({ name: 'job', data: { n: k }, opts: { jobId: `job-${k}` } });
    const size = process.env.DONE ? fs.statSync(process.env.DONE).size : 0;
    const before = now();
    for (;;) {
      try {
        if (batch === 1) await queue.add(jobs[0].name, jobs[0].data, jobs[0].opts);
        else await queue.addBulk(jobs);
        break;
      } catch (error) {
        await pause(20);
      }
    }
    const after = now();
    for (const job of jobs) fs.writeSync(fd, `${job.data.n} ${before} ${after}\n`);
    if (pauseMs > 0) await pause(pauseMs);
    for (let t = 0; pauseMs < 0 && t < 10000 && fs.statSync(process.env.DONE).size === size; t++) await pause(1);
  }
  await queue.close();
}

function work(concurrency, file) {
  const job = async (of) => { fs.writeSync(fd, `${of.data.n} ${now()}\n`); };
  // A short lock, so that the jobs of a worker that was killed come back soon; the default is 30 s.
  const worker = new Worker('bench', job, {
    connection: connection(file), concurrency, lockDuration: 1000, stalledInterval: 1000,
  });
  worker.on('error', () => {});
}

if (what === 'put') put(...args.slice(0, 4).map(Number), args[4]).then(() => process.exit(0));
else work(Number(args[0]), args[1]);
