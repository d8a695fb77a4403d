// Requests as lines on an axis of time, drawn while they happen.

import { draw, dye, ticks } from "./shared.js"

const PITCH = 6 // pixels from one row to the next

export class Timeline {
  // rows: how many requests; blocking: whether one more row shows the request that blocks; span: the seconds that the
  // axis shows at first
  constructor(element, { rows, blocking, span }) {
    this.span = span
    const plot = Object.assign(document.createElement("div"), { className: "plot" })
    this.svg = draw(plot, "svg", { height: (rows + (blocking ? 1 : 0)) * PITCH, role: "img" })
    this.axis = Object.assign(document.createElement("div"), { className: "axis", ariaHidden: "true" })
    element.replaceChildren(plot, this.axis)
    this.lines = Array.from({ length: rows + (blocking ? 1 : 0) }, (_, index) => this.row(index, rows))
    this.describe("No request has been sent.")
    ticks(this.axis, this.span)
  }

  row(index, rows) {
    const y = index * PITCH + PITCH / 2
    const group = draw(this.svg, "g", { class: index === rows ? "blocks" : "" })
    group.style.setProperty("--dye", dye(index, rows))
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

  end(index, at, failed) {
    const line = this.lines[index]
    line.to = at
    line.group.classList.toggle("failed", failed)
    this.reach(at)
    this.place(line, at)
  }

  // Extends the lines of the requests under way to the given second.
  grow(at) {
    this.reach(at)
    for (const line of this.lines) if (line.from !== null && line.to === null) this.place(line, at)
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
  }

  place(line, at) {
    const x = (seconds) => `${((seconds / this.span) * 100).toFixed(3)}%`
    line.run.setAttribute("x1", x(line.from))
    line.run.setAttribute("x2", x(at))
    line.head.setAttribute("cx", x(at))
  }
}
