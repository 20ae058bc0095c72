// Draws what can be seen, and the rest when it comes near. A long page opens as fast as a short one.

export interface Drawing {
  readonly element: HTMLElement
  draw(rebuild: boolean): void
}

/** Pixels above and below the window that count as near. */
const MARGIN = 200

export class Lazy {
  private readonly near = new Set<Drawing>()
  /** What must be drawn when it comes near, and whether from the start. */
  private readonly due = new Map<Drawing, boolean>()
  private readonly byElement = new Map<Element, Drawing>()
  private readonly observer = new IntersectionObserver(entries => {
    for (const { target, isIntersecting } of entries) {
      const drawing = this.byElement.get(target)
      if (!drawing) continue
      if (isIntersecting) this.near.add(drawing)
      else this.near.delete(drawing)
    }
    this.flush(this.near)
  }, { rootMargin: `${MARGIN}px 0px` })

  /** Forgets all drawings. */
  clear(): void {
    this.observer.disconnect()
    this.near.clear()
    this.due.clear()
    this.byElement.clear()
  }

  /** Adds drawings. Each is drawn when it first comes near; what is near now, with the next `draw`. */
  watch(drawings: Drawing[]): void {
    for (const drawing of drawings) {
      this.byElement.set(drawing.element, drawing)
      this.due.set(drawing, true)
      // The observer knows it a frame later, and a screenshot may not wait for that.
      const { top, bottom } = drawing.element.getBoundingClientRect()
      if (top < innerHeight + MARGIN && bottom > -MARGIN) this.near.add(drawing)
      this.observer.observe(drawing.element)
    }
  }

  /** Forgets these drawings. */
  unwatch(drawings: Drawing[]): void {
    for (const drawing of drawings) {
      this.observer.unobserve(drawing.element)
      this.byElement.delete(drawing.element)
      this.near.delete(drawing)
      this.due.delete(drawing)
    }
  }

  /** Draws what is near; the rest when it comes near. */
  draw(): void {
    for (const drawing of this.byElement.values()) this.due.set(drawing, this.due.get(drawing) ?? false)
    this.flush(this.near)
  }

  /** Draws everything from the start, now. */
  drawAll(): void {
    for (const drawing of this.byElement.values()) this.due.set(drawing, true)
    this.flush(this.byElement.values())
  }

  private flush(drawings: Iterable<Drawing>): void {
    for (const drawing of drawings) {
      const rebuild = this.due.get(drawing)
      if (rebuild === undefined) continue
      this.due.delete(drawing)
      drawing.draw(rebuild)
    }
  }
}
