// A heat map as an image: a pixel for each column of the screen and each cell, stretched in height.
// Thousands of rectangles would take the browser a hundred times as long.

import type { HeatMap } from "./data"

/** The part of a canvas to draw to, and how its axes map. */
export interface HeatFrame {
  left: number; top: number; width: number; height: number
  /** The time at the left and the right edge, in seconds. */
  from: number; to: number
  /** Returns the canvas position of a latency. */
  y: (us: number) => number
}

export function drawHeat(ctx: CanvasRenderingContext2D, map: HeatMap, colour: string, frame: HeatFrame): void {
  const width = Math.round(frame.width)
  const cells = map.columns.reduce((most, column) => Math.max(most, (column.cells.at(-1) ?? -1) + 1), 0)
  if (width < 1 || cells === 0) return
  const image = new ImageData(width, cells)
  const [red, green, blue] = [1, 3, 5].map(at => parseInt(colour.slice(at, at + 2), 16)) as [number, number, number]
  const full = Math.log1p(map.most)
  const x = (seconds: number) => Math.round((seconds - frame.from) / (frame.to - frame.from) * width)
  for (const column of map.columns) {
    const begin = Math.max(x(column.from), 0)
    const end = Math.min(Math.max(x(column.to), begin + 1), width)
    for (let at = 0; at < column.cells.length; at++) {
      const alpha = Math.round(255 * (0.12 + 0.78 * Math.log1p(column.counts[at]!) / full))
      const row = cells - 1 - column.cells[at]!
      for (let pixel = begin; pixel < end; pixel++) {
        const place = 4 * (row * width + pixel)
        if (image.data[place + 3]! >= alpha) continue
        image.data[place] = red
        image.data[place + 1] = green
        image.data[place + 2] = blue
        image.data[place + 3] = alpha
      }
    }
  }
  const canvas = document.createElement("canvas")
  canvas.width = width
  canvas.height = cells
  canvas.getContext("2d")!.putImageData(image, 0, 0)
  ctx.save()
  ctx.beginPath()
  ctx.rect(frame.left, frame.top, frame.width, frame.height)
  ctx.clip()
  ctx.imageSmoothingEnabled = false
  // Cells have the same height, because the axis is logarithmic.
  const [low, high] = [frame.y(1), frame.y(2 ** (cells / map.cellsPerOctave))]
  ctx.drawImage(canvas, frame.left, high, frame.width, low - high)
  ctx.restore()
}

/** A row of a chart of cores: how much of its time each core worked. */
export interface Strip { values: Float64Array; colour: string }

/** Draws a row for each strip, the first at the top. A value of 1 is a full CPU. */
export function drawStrips(ctx: CanvasRenderingContext2D, time: Float64Array, strips: Strip[], frame: HeatFrame): void {
  const width = Math.round(frame.width)
  if (width < 1 || strips.length === 0) return
  const rows = frame.y(0) - frame.y(1)
  strips.forEach(({ values, colour }, index) => {
    const most = new Float32Array(width).fill(NaN)
    const x = (seconds: number) => Math.round((seconds - frame.from) / (frame.to - frame.from) * width)
    for (let row = 1; row < time.length; row++) {
      const value = values[row]!
      const [begin, end] = [Math.max(x(time[row - 1]!), 0), Math.min(x(time[row]!) + 1, width)]
      for (let pixel = begin; pixel < end; pixel++) if (!(value < most[pixel]!)) most[pixel] = value
    }
    const [top, height] = [frame.y(strips.length - index) + 1, rows - 2]
    ctx.fillStyle = colour
    for (let begin = 0; begin < width;) {
      const share = Math.round(Math.min(most[begin]!, 1) * 20)
      let end = begin + 1
      while (end < width && Math.round(Math.min(most[end]!, 1) * 20) === share) end++
      if (!Number.isNaN(share)) {
        ctx.globalAlpha = 0.06 + 0.94 * share / 20
        ctx.fillRect(frame.left + begin, top, end - begin, height)
      }
      begin = end
    }
  })
  ctx.globalAlpha = 1
}
