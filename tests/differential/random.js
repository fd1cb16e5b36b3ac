// Random choices that a seed repeats.
"use strict";

let state = 0;

exports.seed = (n) => (state = n >>> 0);

// mulberry32
exports.random = function random(n) {
  state = (state + 0x6d2b79f5) >>> 0;
  let t = state;
  t = Math.imul(t ^ (t >>> 15), t | 1);
  t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
  return ((t ^ (t >>> 14)) >>> 0) % n;
};

exports.pick = (list) => list[exports.random(list.length)];
