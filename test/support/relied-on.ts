/** A row of docs/engineering/relied-on.md. */
export interface ReliedOn {
  /** Of a package, or `Node`. */
  readonly name: string
  /** Files and folders of `src/`. */
  readonly where: readonly string[]
  readonly tests: readonly string[]
}

/** The rows of the page. */
export function parseReliedOn(page: string): ReliedOn[] {
  const rows = page.split('\n').flatMap((line) => {
    const cells = line.split('|').map((cell) => cell.trim())
    return cells.length === 7 && !/^(package|-+)$/.test(cells[1] ?? '') ? [cells] : []
  })
  const quoted = (cell = ''): string[] => [...cell.matchAll(/`((?:src|test)\/[^`]+)`/g)].map(([, name = '']) => name)
  return rows.map((cells) => ({
    name: (cells[1] ?? '').replaceAll('`', ''),
    where: quoted(cells[3]),
    tests: quoted(cells[5]),
  }))
}
