// Requests a second and how long they took, as the server counts them.

import "./crowd.js"
import { ceiling, duration, grouped } from "./numbers.js"
import { follow } from "./pulse.js"
import { Strip } from "./strip.js"
import { calm } from "./svg.js"

const panel = document.getElementById("live")
const find = (name) => panel.querySelector(`[data-${name}]`)

const SPAN = 60 // seconds that the drawings show
const RECENT = 1 // seconds that the figures are of
const MANY = 10 // requests, of fewer of which the drawing shows no median
const FASTEST = 1e-6 // seconds at the lower edge of the drawing of latency
const SLOWEST = 10 // … and at the upper
const ROWS = 42 // threads from one edge to the other

let samples = [] // { at, from, rate, answers, pairs, median }
let bounds = [] // seconds; what a bucket counts took less than its bound
let interval = 0.25
let total = 0
let last = null // { at: the server's clock, seen: ours } of the newest line

/* -- samples --------------------------------------------------------------------------------------------------- */

function take(sample) {
  if (sample === null) return lost()
  if (sample.bounds) {
    bounds = [...sample.bounds, Infinity]
    interval = sample.interval
    last = null // the next line counts from here, however long the page was hidden
    return
  }
  const from = last ? last.at : sample.at - interval
  last = { at: sample.at, seen: performance.now() / 1000 }
  if (samples.length > 0 && sample.at < samples.at(-1).at) samples = [] // another server
  samples.push({ at: sample.at, from, rate: sample.answers / (sample.at - from), answers: sample.answers,
    pairs: sample.latencies, median: null })
  while (samples[0].at < sample.at - SPAN - 1) samples.shift()
  total += sample.answers
  const recent = samples.filter(({ at }) => at > sample.at - RECENT)
  if (sample.answers >= MANY) samples.at(-1).median = quantile([samples.at(-1)], 0.5)
  show(sample, recent)
  for (const strip of [rates, latencies]) strip.runs(clock)
}

function lost() {
  last = null
  for (const name of ["rate", "median", "p99"]) write(name, "–")
  for (const strip of [rates, latencies]) strip.halt()
}

// The server's time now, an interval ago: the newest sample comes in at the right edge and does not jump there.
function clock() {
  return last ? last.at + Math.min(performance.now() / 1000 - last.seen - interval, interval) : samples.at(-1)?.at ?? 0
}

// The time that so great a share of the requests took at most; within its bucket they are taken to lie evenly.
function quantile(some, share) {
  const counts = new Map()
  let all = 0
  for (const { pairs } of some) {
    for (let i = 0; i < pairs.length; i += 2) {
      counts.set(pairs[i], (counts.get(pairs[i]) ?? 0) + pairs[i + 1])
      all += pairs[i + 1]
    }
  }
  if (all === 0) return null
  let rest = all * share
  for (const bucket of [...counts.keys()].sort((a, b) => a - b)) {
    const count = counts.get(bucket)
    const start = bucket > 0 ? bounds[bucket - 1] : 0
    if (rest <= count) return bounds[bucket] === Infinity ? start : start + (bounds[bucket] - start) * (rest / count)
    rest -= count
  }
  return null
}

/* -- figures ------------------------------------------------------------------------------------------------------- */

// A figure, and its unit smaller.
function write(name, text) {
  const [figure, unit] = text.split(" ")
  find(name).replaceChildren(figure)
  if (unit) find(name).append(" ", Object.assign(document.createElement("small"), { textContent: unit }))
}

function show(sample, recent) {
  const answers = recent.reduce((sum, one) => sum + one.answers, 0)
  const seconds = recent.at(-1).at - recent[0].from
  const rate = Math.round(answers / seconds)
  const most = Math.round(Math.max(...samples.map((one) => one.rate)))
  write("rate", grouped.format(rate))
  write("median", duration(quantile(recent, 0.5)))
  write("p99", duration(quantile(recent, 0.99)))
  find("most").textContent = `at most ${grouped.format(most)}`
  for (const place of panel.querySelectorAll("[data-now]")) {
    const value = place.dataset.now === "answers" ? total : sample[place.dataset.now]
    place.textContent = value === undefined ? "unknown" : value === null ? "none" : grouped.format(value)
  }
  panel.dataset.most = most
  find("rates").setAttribute("aria-label",
    `Requests a second in the last minute: at most ${grouped.format(most)}, now ${grouped.format(rate)}.`)
  find("latencies").setAttribute("aria-label",
    `How long requests took. In the last second half of them took less than ${find("median").textContent}, ` +
    `99 of 100 less than ${find("p99").textContent}.`)
}

/* -- drawings ------------------------------------------------------------------------------------------------------ */

let top = 10 // of the scale; it moves to where it should be

function paintRates(strip, now) {
  const { context, colours, height } = strip
  const seen = samples.filter(({ at }) => at >= now - SPAN)
  const wanted = ceiling(Math.max(10, ...seen.map((one) => one.rate * 1.05)))
  top += (wanted - top) * (calm.matches || Math.abs(wanted - top) < wanted / 200 ? 1 : 0.2)
  const y = (rate) => height - 1 - (rate / top) * (height - 22)
  for (const share of [0, 0.5, 1]) strip.rule(y(wanted * share), share === 0 ? "" : grouped.format(wanted * share))
  if (seen.length === 0) return
  const path = new Path2D()
  const outline = new Path2D()
  let before = null
  for (const one of seen) {
    const [left, right, level] = [strip.x(one.from, now), strip.x(one.at, now), y(one.rate)]
    path.rect(left, level, right - left + 0.4, height - level)
    if (before === null || one.from - before > 0.01) outline.moveTo(left, level)
    outline.lineTo(left, level)
    outline.lineTo(right, level)
    before = one.at
  }
  context.globalAlpha = 0.14
  context.fillStyle = colours.madder
  context.fill(path)
  context.globalAlpha = 1
  context.strokeStyle = colours.madder
  context.lineWidth = 2
  context.stroke(outline)
}

const decades = [[1e-6, "1 µs"], [1e-5, "10 µs"], [1e-4, "100 µs"], [1e-3, "1 ms"], [1e-2, "10 ms"], [1e-1, "0.1 s"], [1, "1 s"]]

// How far up a time lies, from 0 to 1.
const place = (seconds) =>
  Math.min(Math.max(Math.log(seconds / FASTEST) / Math.log(SLOWEST / FASTEST), 0), 1)

// The thread that a bucket's requests are woven into.
function rowOf(bucket) {
  const end = bounds[bucket]
  const middle = end === Infinity ? SLOWEST : bucket > 0 ? Math.sqrt(bounds[bucket - 1] * end) : end / 2
  return Math.min(Math.floor(place(middle) * ROWS), ROWS - 1)
}

function paintLatencies(strip, now) {
  const { context, colours, height } = strip
  const pitch = (height - 20) / ROWS
  const y = (share) => height - share * (height - 20)
  for (const [seconds, text] of decades) strip.rule(y(place(seconds)) - (seconds === FASTEST ? 1 : 0), text)
  context.fillStyle = colours.indigo
  for (const one of samples) {
    if (one.at < now - SPAN || one.answers === 0) continue
    const left = strip.x(one.from, now)
    const width = Math.max(strip.x(one.at, now) - left - 0.5, 1.5)
    const rows = new Map()
    for (let i = 0; i < one.pairs.length; i += 2) {
      const row = rowOf(one.pairs[i])
      rows.set(row, (rows.get(row) ?? 0) + one.pairs[i + 1])
    }
    for (const [row, count] of rows) {
      context.globalAlpha = 0.3 + 0.7 * Math.min(Math.log10(1 + count) / 3.5, 1)
      context.fillRect(left, y((row + 1) / ROWS) + 0.5, width, Math.max(pitch - 1, 1.5))
    }
  }
  context.globalAlpha = 1
  context.strokeStyle = colours.madder
  context.lineWidth = 2
  context.beginPath()
  let before = null // the level of the one before; one that is far away is no continuation
  for (const one of samples) {
    if (one.at < now - SPAN || one.median === null) {
      before = null
      continue
    }
    const level = y(place(one.median))
    if (before === null || Math.abs(level - before) > height / 6) context.moveTo(strip.x(one.from, now), level)
    context.lineTo((strip.x(one.from, now) + strip.x(one.at, now)) / 2, level)
    context.lineTo(strip.x(one.at, now), level)
    before = level
  }
  context.stroke()
}

function buildAxis() {
  for (const ago of [60, 45, 30, 15, 0]) {
    const mark = document.createElement("span")
    mark.textContent = ago === 0 ? "now" : `−${ago} s`
    mark.style.left = `${(1 - ago / SPAN) * 100}%`
    if (ago === 0) mark.className = "end"
    find("axis").append(mark)
  }
}

const rates = new Strip(find("rates"), { span: SPAN, paint: paintRates })
const latencies = new Strip(find("latencies"), { span: SPAN, paint: paintLatencies })
buildAxis()
follow(take)
