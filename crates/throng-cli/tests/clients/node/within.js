// A wait with a timeout: far longer than anything here takes on a busy machine, with a name for the
// missing event.

export const PATIENCE_MS = 200_000

export async function within(promise, what, ms = PATIENCE_MS) {
  let timer
  const late = new Promise((_, fail) => {
    timer = setTimeout(() => fail(new Error(`never within ${ms} ms: ${what}`)), ms)
  })
  try {
    return await Promise.race([promise, late])
  } finally {
    clearTimeout(timer)
  }
}
