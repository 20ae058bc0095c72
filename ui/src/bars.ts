// Lines of which many rows share a place: a pale bar from the smallest to the largest value of each,
// and a line through the means, which is for the eye alone. A stroke through all these values would
// take a browser without a GPU many times as long.

import type uPlot from "uplot"
import { colour } from "./dom"
import type { Points } from "./levels"
import type { ChartSpec } from "./specs"

export function drawBars(plot: uPlot, points: Points, spec: ChartSpec): void {
  const { bbox: { left, top, width, height }, ctx } = plot
  const places = points.time.length / 2
  const edges = Int32Array.from({ length: places + 1 }, (_, place) => place < places
    ? Math.round(plot.valToPos(points.time[2 * place]!, "x", true)) : Math.round(plot.valToPos(points.time.at(-1)!, "x", true)) + 1)
  const y = (value: number) => Math.round(plot.valToPos(value, "y", true))
  const bottom = top + height
  ctx.save()
  ctx.beginPath()
  ctx.rect(left, top, width, height)
  ctx.clip()
  spec.lines.forEach((line, index) => {
    if (line.hidden) return
    const values = points.values[index]!
    const below = spec.stacked ? points.values[index - 1] : undefined
    const thick = Math.max(Math.round((line.colour === "ink" ? 2 : 1) * devicePixelRatio), 1)
    ctx.fillStyle = colour(line.colour)
    const means = points.means[index]!
    let last = NaN
    for (let place = 0; place < places; place++) {
      const [one, two] = [values[2 * place], values[2 * place + 1]]
      const [x, wide] = [edges[place]!, edges[place + 1]! - edges[place]!]
      if (one == null || two == null) {
        last = NaN
        continue
      }
      // On the canvas, the larger value is higher and its y is smaller.
      const [high, low] = [y(Math.max(one, two)), y(Math.min(one, two))]
      if (spec.stacked) {
        const base = below ? y(Math.max(below[2 * place] ?? 0, below[2 * place + 1] ?? 0)) : bottom
        ctx.globalAlpha = 0.75
        ctx.fillRect(x, high, wide, base - high)
        continue
      }
      ctx.globalAlpha = line.dash ? 0.12 : 0.25
      ctx.fillRect(x, high, wide, low - high)
      const mean = y(means[place]!)
      if (line.fill) {
        ctx.globalAlpha = 0.12
        ctx.fillRect(x, mean, wide, bottom - mean)
      }
      // Neighbours touch each other, as the points of a line do.
      ctx.globalAlpha = line.dash ? 0.6 : 1
      ctx.fillRect(x, mean, wide, thick)
      if (last < mean) ctx.fillRect(x, last, thick, mean - last)
      if (last > mean) ctx.fillRect(x, mean, thick, last - mean)
      last = mean
    }
  })
  ctx.restore()
}
