// Numbers as the page carries them: see `packed.rs` of `throng-report`. They become arrays of
// numbers when a chart first asks for them.

const CONTINUES = 93
const ENDS = 48
const UNKNOWN = 33
const NOT_ZERO = /[^!0]/

/** One series: a number a row, NaN where it is not known. It grows as rows come. */
export class Column {
  private values: Float64Array
  private known = 0
  private moving: boolean | null = null

  /** Makes a column of values that stand in a text, each as the difference to the one before. */
  constructor(private text = "") {
    this.values = new Float64Array(0)
  }

  get length(): number {
    return this.all().length
  }

  /** Returns the values. The array is another one after `push`. */
  all(): Float64Array {
    if (this.text !== "") {
      this.values = differences(this.text)
      this.known = this.values.length
      this.text = ""
    }
    return this.values.length === this.known ? this.values : this.values.subarray(0, this.known)
  }

  /** Sets the value of a row at the end. Rows between are unknown. */
  set(row: number, value: number | null): void {
    this.all()
    if (row >= this.values.length) {
      const grown = new Float64Array(Math.max(row + 1, this.values.length * 2)).fill(NaN)
      grown.set(this.values.subarray(0, this.known))
      this.values = grown
    }
    this.values[row] = value ?? NaN
    this.known = Math.max(this.known, row + 1)
    if (value !== null && value > 0) this.moving = true
  }

  /** Reports whether any value is more than zero; of growths and gauges, whether any is not zero. */
  moves(): boolean {
    this.moving ??= this.text === "" ? this.all().some(value => value > 0) : NOT_ZERO.test(this.text)
    return this.moving
  }
}

/** Returns the values whose differences stand in `text`. */
export function differences(text: string): Float64Array {
  let rows = 0
  for (let at = 0; at < text.length; at++) if (text.charCodeAt(at) < CONTINUES) rows++
  const values = new Float64Array(rows)
  const numbers = new Numbers(text)
  let sum = 0
  for (let row = 0; row < rows; row++) {
    const difference = numbers.next()
    values[row] = Number.isNaN(difference) ? NaN : (sum += difference)
  }
  return values
}

/** Reads one number after the other. */
export class Numbers {
  private at = 0

  constructor(private readonly text: string) {}

  get left(): boolean {
    return this.at < this.text.length
  }

  /** Returns the next number; NaN if it is not known. */
  next(): number {
    const { text } = this
    let code = text.charCodeAt(this.at++)
    if (code === UNKNOWN) return NaN
    // Most numbers have at most six groups, which fit into the 32 bits of an integer.
    let [rest, factor] = [0, 1]
    while (code >= CONTINUES) {
      rest += (code - CONTINUES) * factor
      factor *= 32
      code = text.charCodeAt(this.at++)
    }
    rest += (code - ENDS) * factor
    return rest % 2 === 0 ? rest / 2 : -(rest + 1) / 2
  }
}
