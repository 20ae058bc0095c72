// Making elements, and the colour by which a name is known everywhere on the page.

export function element(tag, text) {
  const made = document.createElement(tag)
  if (text !== undefined) made.textContent = text
  return made
}

/** The angle of a name's colour, always the same. */
export function hue(name) {
  let sum = 0
  for (const sign of name) sum = (sum * 31 + sign.codePointAt(0)) % 360
  return sum
}
