// A canvas that shows the newest seconds; its right edge is the time of the newest sample.

const dark = matchMedia("(prefers-color-scheme: dark)")

export class Strip {
  // span: the seconds that it shows; paint: called with the strip to draw it anew
  constructor(canvas, { span, paint }) {
    Object.assign(this, { canvas, span, paint, now: 0 })
    this.context = canvas.getContext("2d")
    new ResizeObserver(() => this.fit()).observe(canvas)
    dark.addEventListener("change", () => this.fit())
  }

  fit() {
    const style = getComputedStyle(this.canvas)
    this.colours = Object.fromEntries(["faded", "rule", "indigo", "madder"]
      .map((name) => [name, style.getPropertyValue(`--${name}`).trim()]))
    this.font = `400 12px ${style.getPropertyValue("--mono")}`
    this.density = window.devicePixelRatio || 1
    this.width = this.canvas.clientWidth
    this.height = this.canvas.clientHeight
    this.canvas.width = Math.round(this.width * this.density)
    this.canvas.height = Math.round(this.height * this.density)
    this.draw(this.now)
  }

  draw(now) {
    this.now = now
    if (!this.width) return
    const { context, density } = this
    context.setTransform(density, 0, 0, density, 0, 0)
    context.clearRect(0, 0, this.width, this.height)
    context.font = this.font
    context.lineJoin = "round"
    this.paint(this)
  }

  x(at) {
    return this.width * (1 - (this.now - at) / this.span)
  }

  // Draws a horizontal line over the whole width, and its label.
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
