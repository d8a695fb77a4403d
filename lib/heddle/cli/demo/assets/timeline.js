// Requests as lines on an axis of time, drawn while they happen.

import { draw, dye } from "./svg.js"

const PITCH = 6 // pixels from one row to the next

export class Timeline {
  // rows: how many requests; span: the seconds that the axis shows at first
  constructor(element, { rows, span }) {
    this.rows = rows
    this.first = span
    this.plot = document.createElement("div")
    this.plot.className = "plot"
    this.svg = draw(this.plot, "svg", { height: rows * PITCH, role: "img" })
    this.axis = document.createElement("div")
    this.axis.className = "axis"
    this.axis.setAttribute("aria-hidden", "true")
    element.replaceChildren(this.plot, this.axis)
    this.clear()
  }

  clear() {
    this.span = this.first
    this.svg.replaceChildren()
    this.shades = []
    this.lines = Array.from({ length: this.rows }, (_, index) => this.row(index))
    this.describe("No request has been sent.")
    ticks(this.axis, this.span)
  }

  row(index) {
    const y = index * PITCH + PITCH / 2
    const group = draw(this.svg, "g")
    group.style.setProperty("--dye", dye(index, this.rows))
    draw(group, "line", { class: "rest", x1: "0", x2: "100%", y1: y, y2: y })
    return { group, y, from: null, to: null }
  }

  start(index, at) {
    const line = this.lines[index]
    const { group, y } = line
    line.from = at
    line.run = draw(group, "line", { class: "run", y1: y, y2: y })
    line.head = draw(group, "circle", { class: "head", cy: y, r: 3.2 })
    this.place(line, at)
  }

  end(index, at, failed = false) {
    const line = this.lines[index]
    line.to = at
    line.group.classList.toggle("failed", failed)
    this.reach(at)
    this.place(line, at)
  }

  // Draws what is still under way up to the given second.
  grow(at) {
    this.reach(at)
    for (const line of this.lines) if (line.from !== null && line.to === null) this.place(line, at)
  }

  // Shades a span of time behind all the lines.
  shade(from, to, text) {
    const rect = draw(this.svg, "rect", { class: "stall", y: 0, height: "100%" })
    draw(rect, "title").textContent = text
    this.svg.prepend(rect)
    this.shades.push({ rect, from, to })
    this.reach(to)
    this.lay(this.shades.at(-1))
  }

  lay({ rect, from, to }) {
    rect.setAttribute("x", `${((from / this.span) * 100).toFixed(3)}%`)
    rect.setAttribute("width", `${(((to - from) / this.span) * 100).toFixed(3)}%`)
  }

  describe(text) {
    this.svg.setAttribute("aria-label", text)
  }

  // Widens the axis when time runs past it.
  reach(at) {
    if (at <= this.span) return
    this.span = at * 1.25
    ticks(this.axis, this.span)
    for (const line of this.lines) if (line.to !== null) this.place(line, line.to)
    for (const shade of this.shades) this.lay(shade)
  }

  place(line, at) {
    const x = (seconds) => `${((seconds / this.span) * 100).toFixed(3)}%`
    line.run.setAttribute("x1", x(line.from))
    line.run.setAttribute("x2", x(at))
    line.head.setAttribute("cx", x(at))
  }
}

// Writes the marks of an axis that shows so many seconds, as many as there is room for.
export function ticks(axis, span) {
  const most = Math.max(Math.min((axis.clientWidth || 600) / 80, 6), 2)
  const step = [0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10, 20].find((size) => span / size <= most) ?? 60
  axis.replaceChildren()
  for (let at = 0; at <= span + 1e-9; at += step) {
    const mark = document.createElement("span")
    mark.textContent = at === 0 ? "0" : `${Number(at.toFixed(2))} s`
    mark.style.left = `${(at / span) * 100}%`
    if (at > span - 1e-9) mark.className = "end"
    axis.append(mark)
  }
}
