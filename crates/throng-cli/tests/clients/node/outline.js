// What a page shows in its window, as the pictures of the README record it: the headings in sight,
// with the id of their part. A test compares it with the page as it is.

/** Returns the headings in the window of `page`, each with the id of its chart or the name of its part. */
export function outline(page) {
  return page.evaluate(() => [...document.querySelectorAll(".grade, .bar, .chart h2, .table h2, .figures, .remedy")]
    .filter(element => {
      const { top, bottom } = element.getBoundingClientRect()
      return bottom > 0 && top < innerHeight
    })
    .map(element => element.matches(".chart h2, .table h2")
      ? { id: element.parentElement.id, title: element.firstChild.textContent }
      : { part: element.className.split(" ")[0] || element.parentElement.className }))
}
