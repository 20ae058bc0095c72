// Helpers that create elements, and the colour of a name, which is the same everywhere on the page.

export function element(tag, text) {
  const made = document.createElement(tag)
  if (text !== undefined) made.textContent = text
  return made
}

/** Returns the hue of a name, which never changes. */
export function hue(name) {
  let sum = 0
  for (const sign of name) sum = (sum * 31 + sign.codePointAt(0)) % 360
  return sum
}
