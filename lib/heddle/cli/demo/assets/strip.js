// A canvas whose right edge is now, and which moves to the left as time passes.

import { calm } from "./svg.js"

const dark = matchMedia("(prefers-color-scheme: dark)")

export class Strip {
  // span: the seconds that it shows; paint: called with a Brush to draw it anew
  constructor(canvas, { span, paint }) {
    this.canvas = canvas
    this.span = span
    this.paint = paint
    this.context = canvas.getContext("2d")
    this.seen = false
    this.now = () => 0 // seconds, by the clock of what is drawn
    this.live = false // does that clock go?
    new ResizeObserver(() => this.fit()).observe(canvas)
    new IntersectionObserver(([entry]) => {
      this.seen = entry.isIntersecting
      this.turn()
    }).observe(canvas)
    dark.addEventListener("change", () => this.fit())
    document.fonts.ready.then(() => this.fit())
  }

  fit() {
    const style = getComputedStyle(this.canvas)
    this.colours = Object.fromEntries(["ink", "faded", "rule", "weave", "indigo", "madder"]
      .map((name) => [name, style.getPropertyValue(`--${name}`).trim()]))
    this.font = `400 12px ${style.getPropertyValue("--mono")}`
    this.density = window.devicePixelRatio || 1
    this.width = this.canvas.clientWidth
    this.height = this.canvas.clientHeight
    this.canvas.width = Math.round(this.width * this.density)
    this.canvas.height = Math.round(this.height * this.density)
    this.draw()
  }

  draw() {
    if (!this.colours || !this.width) return
    const { context, density } = this
    context.setTransform(density, 0, 0, density, 0, 0)
    context.clearRect(0, 0, this.width, this.height)
    context.font = this.font
    context.lineJoin = "round"
    this.paint(this, this.now())
  }

  // Goes on by itself while it is seen and something moves; else it is drawn when a sample arrives.
  turn() {
    if (this.moving || !this.seen || !this.live || calm.matches) return
    this.moving = true
    const frame = () => {
      this.moving = this.seen && this.live && !calm.matches
      this.draw()
      if (this.moving) requestAnimationFrame(frame)
    }
    requestAnimationFrame(frame)
  }

  // A sample has arrived: its time replaces the estimate.
  runs(now) {
    this.now = now
    this.live = true
    if (calm.matches || !this.seen) this.draw()
    this.turn()
  }

  halt() {
    this.live = false
    this.draw()
  }

  x(at, now) {
    return this.width * (1 - (now - at) / this.span)
  }

  // A line across, and its label.
  rule(y, text) {
    const { context, colours } = this
    const middle = Math.round(y) + 0.5
    context.strokeStyle = colours.rule
    context.lineWidth = 1
    context.beginPath()
    context.moveTo(0, middle)
    context.lineTo(this.width, middle)
    context.stroke()
    context.fillStyle = colours.faded
    context.fillText(text, 0, middle - 5)
  }
}
