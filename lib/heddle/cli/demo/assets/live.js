// The panel "Requests a second, live": how many requests the server answers, and how long they take. Its button sends a
// crowd of clients.

import { count, duration, finder, grouped, lines, mark } from "./shared.js"
import { Strip } from "./strip.js"

const panel = document.getElementById("live")
const find = finder(panel)

const SPAN = 60 // seconds that the drawings show
const RECENT = 1 // seconds that the figures cover
const MANY = 10 // requests that a sample needs for its median to be drawn
const FASTEST = 1e-6 // seconds at the lower edge of the drawing of latency
const SLOWEST = 10 // seconds at its upper edge
const ROWS = 42 // rows of the drawing of latency
const AGAIN = 1000 // ms until the page requests /pulse again after the response has ended
const DECADES = [[1e-6, "1 µs"], [1e-5, "10 µs"], [1e-4, "100 µs"], [1e-3, "1 ms"], [1e-2, "10 ms"], [1e-1, "0.1 s"], [1, "1 s"]]

let samples = [] // { at, from, rate, answers, pairs, median }
let bounds = [] // seconds; a bucket counts requests that took less than its bound
let interval = 0.25
let total = 0
let last = null // the server's time of the newest line

/* -- samples --------------------------------------------------------------------------------------------------- */

let stream = null // the AbortController of the response under way

async function listen() {
  const own = stream = new AbortController()
  try {
    for await (const line of lines("/pulse", { cache: "no-store", signal: own.signal })) take(JSON.parse(line))
  } catch {
    // The reason does not matter: the code below handles every end of the response.
  }
  if (stream !== own) return
  last = null
  for (const name of ["rate", "median", "p99"]) write(name, "–")
  setTimeout(() => { if (stream === own) listen() }, AGAIN)
}

function look() {
  stream?.abort()
  stream = null
  if (!document.hidden) listen()
}

// The first line of a response has the seconds between two lines, and the bounds of the buckets.
function take(sample) {
  if (sample.bounds) {
    bounds = [...sample.bounds, Infinity]
    interval = sample.interval
    last = null // the next line covers one interval, however long the page was hidden
    return
  }
  const { at, answers, latencies: pairs } = sample
  const from = last ?? at - interval
  last = at
  if (samples.length > 0 && at < samples.at(-1).at) samples = [] // another server
  const median = answers >= MANY ? quantile([{ pairs }], 0.5) : null
  samples.push({ at, from, rate: answers / (at - from), answers, pairs, median })
  while (samples[0].at < at - SPAN - 1) samples.shift()
  total += answers
  show(sample, samples.filter((one) => one.at > at - RECENT))
  for (const strip of strips) strip.draw(at)
}

// The quantile for this share of the requests, interpolated linearly within its bucket.
function quantile(some, share) {
  const counts = bounds.map(() => 0)
  for (const { pairs } of some) for (let i = 0; i < pairs.length; i += 2) counts[pairs[i]] += pairs[i + 1]
  const all = counts.reduce((sum, one) => sum + one, 0)
  if (all === 0) return null
  let rest = all * share
  const bucket = counts.findIndex((one) => one > 0 && (rest -= one) <= 0)
  const start = bucket > 0 ? bounds[bucket - 1] : 0
  return bounds[bucket] === Infinity ? start : start + (bounds[bucket] - start) * (1 + rest / counts[bucket])
}

/* -- figures ------------------------------------------------------------------------------------------------------- */

// Writes a figure, with its unit in small type.
function write(name, text) {
  const [figure, unit] = text.split(" ")
  find(name).replaceChildren(figure)
  if (unit) find(name).append(" ", Object.assign(document.createElement("small"), { textContent: unit }))
}

function show(sample, recent) {
  const answers = recent.reduce((sum, one) => sum + one.answers, 0)
  const rate = grouped.format(Math.round(answers / (recent.at(-1).at - recent[0].from)))
  const most = Math.round(Math.max(...samples.map((one) => one.rate)))
  const [median, p99] = [0.5, 0.99].map((share) => duration(quantile(recent, share)))
  write("rate", rate)
  write("median", median)
  write("p99", p99)
  find("most").textContent = `at most ${grouped.format(most)}`
  for (const place of panel.querySelectorAll("[data-now]")) {
    const value = place.dataset.now === "answers" ? total : sample[place.dataset.now]
    place.textContent = value === undefined ? "unknown" : value === null ? "none" : grouped.format(value)
  }
  panel.dataset.most = most
  find("rates").setAttribute("aria-label", `Requests a second in the last minute: at most ${grouped.format(most)}, now ${rate}.`)
  find("latencies").setAttribute("aria-label",
    `How long requests took. In the last second, half of them took less than ${median}, 99 of 100 less than ${p99}.`)
}

/* -- drawings ------------------------------------------------------------------------------------------------------ */

// The next round number at or above the value.
function ceiling(value) {
  const power = 10 ** Math.floor(Math.log10(value))
  return [1, 2, 3, 4, 6, 8, 10].map((step) => step * power).find((step) => step >= value)
}

function paintRates(strip) {
  const { context, colours, height } = strip
  const shown = samples.filter(({ at }) => at >= strip.now - SPAN)
  const wanted = ceiling(Math.max(10, ...shown.map((one) => one.rate * 1.05)))
  const y = (rate) => height - 1 - (rate / wanted) * (height - 22)
  for (const share of [0, 0.5, 1]) strip.rule(y(wanted * share), share === 0 ? "" : grouped.format(wanted * share))
  const [path, outline] = [new Path2D(), new Path2D()]
  let before = -1
  for (const { from, at, rate } of shown) {
    const [left, right, level] = [strip.x(from), strip.x(at), y(rate)]
    path.rect(left, level, right - left + 0.4, height - level)
    if (from - before > 0.01) outline.moveTo(left, level)
    outline.lineTo(left, level)
    outline.lineTo(right, level)
    before = at
  }
  context.globalAlpha = 0.14
  context.fillStyle = context.strokeStyle = colours.madder
  context.fill(path)
  context.globalAlpha = 1
  context.lineWidth = 2
  context.stroke(outline)
}

// The height of a time in the drawing of latency, from 0 to 1.
const place = (seconds) => Math.min(Math.max(Math.log(seconds / FASTEST) / Math.log(SLOWEST / FASTEST), 0), 1)

// The row of the drawing for a bucket's requests.
function rowOf(bucket) {
  const end = bounds[bucket]
  const middle = end === Infinity ? SLOWEST : bucket > 0 ? Math.sqrt(bounds[bucket - 1] * end) : end / 2
  return Math.min(Math.floor(place(middle) * ROWS), ROWS - 1)
}

function paintLatencies(strip) {
  const { context, colours, height } = strip
  const pitch = (height - 20) / ROWS
  const y = (share) => height - share * (height - 20)
  const shown = samples.filter(({ at }) => at >= strip.now - SPAN)
  for (const [seconds, text] of DECADES) strip.rule(y(place(seconds)) - (seconds === FASTEST ? 1 : 0), text)
  context.fillStyle = colours.indigo
  for (const { from, at, pairs } of shown) {
    const left = strip.x(from)
    const width = Math.max(strip.x(at) - left - 0.5, 1.5)
    const threads = new Array(ROWS).fill(0)
    for (let i = 0; i < pairs.length; i += 2) threads[rowOf(pairs[i])] += pairs[i + 1]
    threads.forEach((many, row) => {
      context.globalAlpha = 0.3 + 0.7 * Math.min(Math.log10(1 + many) / 3.5, 1)
      if (many > 0) context.fillRect(left, y((row + 1) / ROWS) + 0.5, width, Math.max(pitch - 1, 1.5))
    })
  }
  context.globalAlpha = 1
  context.strokeStyle = colours.madder
  context.lineWidth = 2
  context.beginPath()
  let before = null // the level of the previous sample; the line breaks at a large jump
  for (const { from, at, median } of shown) {
    const level = median === null ? null : y(place(median))
    if (level !== null) {
      if (before === null || Math.abs(level - before) > height / 6) context.moveTo(strip.x(from), level)
      context.lineTo(strip.x((from + at) / 2), level)
      context.lineTo(strip.x(at), level)
    }
    before = level
  }
  context.stroke()
}

/* -- the crowd ------------------------------------------------------------------------------------------------------ */

async function send() {
  const button = find("run")
  if (button.getAttribute("aria-disabled") === "true") return
  const clients = Number(panel.querySelector("[name=crowd]:checked").value)
  button.setAttribute("aria-disabled", "true")
  find("status").textContent = `A separate process requests /hello, over ${count(clients, "connection")}.`
  let outcome = null
  try {
    for await (const line of lines(`/burst?clients=${clients}`)) {
      const { event, answers, at } = outcome = JSON.parse(line)
      if (event !== "done") find("status").textContent = `${count(clients, "client")}: ${grouped.format(answers)} responses in ${at.toFixed(1)} s.`
    }
    if (outcome?.event !== "done") throw new Error("the stream ended early")
    report(outcome)
  } catch (error) {
    find("status").textContent = `The crowd failed: ${error.message}.`
  } finally {
    button.removeAttribute("aria-disabled")
  }
}

function report({ clients, answers, seconds, median, p99, failed, message }) {
  const rate = Math.round(answers / seconds)
  find("status").textContent =
    `${count(clients, "client")} got ${grouped.format(answers)} responses in ${seconds.toFixed(1)} s: ` +
    `${grouped.format(rate)} a second on this machine, on which the clients run, too. ` +
    `${failed > 0 ? `${count(failed, "client")} failed: ${message}.` : "None failed."} ` +
    `Including the time in queues, half of the requests took less than ${duration(median)}, 99 of 100 less than ${duration(p99)}.`
  Object.assign(panel.dataset, { rate, failed })
}

const strips = [["rates", paintRates], ["latencies", paintLatencies]]
  .map(([name, paint]) => new Strip(find(name), { span: SPAN, paint }))
mark(find("axis"), [60, 45, 30, 15, 0].map((ago) => [1 - ago / SPAN, ago === 0 ? "now" : `−${ago} s`]))
find("run").addEventListener("click", send)
document.addEventListener("visibilitychange", look)
look()
