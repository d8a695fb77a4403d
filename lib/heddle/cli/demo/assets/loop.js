// The last minute of the loop: by how much it was late, and where it stood still.

import { duration } from "./numbers.js"
import { follow } from "./pulse.js"
import { Strip } from "./strip.js"

const panel = document.getElementById("block")
const find = (name) => panel.querySelector(`[data-${name}]`)

const SPAN = 60 // seconds that the drawing shows
const LEAST = 1e-3 // seconds at its lower edge
const MOST = 3 // … and at its upper
const SILENCE = 3 // intervals without a line, after which the loop seems to stand still

let samples = [] // { at, from, late }
let stalls = [] // { from, to, cause }
let interval = 0.25
let last = null // { at: the server's clock, seen: ours } of the newest line

const seconds = () => performance.now() / 1000

function take(sample) {
  if (sample === null) {
    last = null
    return strip.halt()
  }
  if (sample.bounds) {
    interval = sample.interval
    last = null
    return
  }
  const from = last ? last.at : sample.at - interval
  last = { at: sample.at, seen: seconds() }
  if (samples.length > 0 && sample.at < samples.at(-1).at) [samples, stalls] = [[], []] // another server
  samples.push({ at: sample.at, from, late: sample.late })
  stalls.push(...sample.stalls)
  while (samples[0].at < sample.at - SPAN - 1) samples.shift()
  stalls = stalls.filter(({ to }) => to > sample.at - SPAN - 1)
  tell(sample.stalls.at(-1))
  strip.runs(clock)
}

function tell(newest) {
  if (newest) find("last").textContent = `, the last time for ${duration(newest.to - newest.from)}: ${newest.cause}`
  const worst = Math.max(...samples.map(({ late }) => late))
  find("loop").setAttribute("aria-label",
    `The loop in the last minute: at most ${duration(worst)} late, and ${stalls.length} times it stood still.`)
  panel.dataset.seen = stalls.length
}

// The server's time now, an interval ago. It goes on without samples, so that a stall is visible.
const clock = () => (last ? last.at + seconds() - last.seen - interval : samples.at(-1)?.at ?? 0)

const silent = () => last !== null && seconds() - last.seen > SILENCE * interval

// How far up a time lies, from 0 to 1.
const place = (late) => Math.min(Math.max(Math.log(late / LEAST) / Math.log(MOST / LEAST), 0), 1)

function paint(strip, now) {
  const { context, colours, height } = strip
  const y = (late) => height - 1 - place(late) * (height - 18)
  for (const [late, text] of [[LEAST, ""], [1e-2, "10 ms"], [0.1, "0.1 s"], [1, "1 s"]]) strip.rule(y(late), text)
  const band = (from, to, colour) => {
    const left = strip.x(from, now)
    context.fillStyle = colour
    context.globalAlpha = 0.25
    context.fillRect(left, 0, Math.max(strip.x(to, now) - left, 2), height)
    context.globalAlpha = 1
  }
  for (const { from, to } of stalls) band(from, to, colours.madder)
  if (silent()) band(last.at, now, colours.madder)
  context.fillStyle = colours.indigo
  for (const { at, from, late } of samples) {
    const left = strip.x(from, now)
    const level = Math.min(y(Math.max(late, LEAST)), height - 2)
    context.fillRect(left, level, Math.max(strip.x(at, now) - left - 0.5, 1), height - level)
  }
}

const strip = new Strip(find("loop"), { span: SPAN, paint })
follow(take)
setInterval(() => { if (silent()) strip.draw() }, 250) // where nothing moves by itself
