/** A pattern in which `*` means any characters, none included. */
export interface Glob {
  readonly pattern: string
  matches(text: string): boolean
}

/** Compiles a pattern; matching takes at most time in proportion to text times pattern, without recursion. */
export function compileGlob(pattern: string): Glob {
  const parts = pattern.split('*')
  if (parts.length === 1) return { pattern, matches: (text) => text === pattern }
  const first = parts[0] ?? ''
  const last = parts.at(-1) ?? ''
  const middle = parts.slice(1, -1).filter((part) => part !== '')
  return {
    pattern,
    matches(text) {
      if (text.length < first.length + last.length || !text.startsWith(first) || !text.endsWith(last)) return false
      const end = text.length - last.length
      let at = first.length
      for (const part of middle) {
        const found = text.indexOf(part, at)
        if (found === -1 || found + part.length > end) return false
        at = found + part.length
      }
      return true
    },
  }
}

/** Stands for any characters in a text that is matched as a whole; no URI has it. */
const ANY = '\uFFFF'

/** How much of what a URI template (RFC 6570) expands to a pattern matches, as far as that can be said without its variables. */
export function matchTemplate(glob: Glob, template: string): 'all' | 'some' | 'none' {
  const text = template.replace(/\{[^{}]*\}/g, ANY)
  if (glob.matches(text)) return 'all'
  return intersects(glob.pattern, text) ? 'some' : 'none'
}

/** Whether some text matches both patterns. */
function intersects(pattern: string, text: string): boolean {
  // Row by row over the pattern: which ends of the text are reachable.
  let row = closed(new Set([0]), text)
  for (const character of pattern) {
    const next = new Set<number>()
    if (character === '*') {
      const from = Math.min(...row)
      for (let at = from; at <= text.length; at++) next.add(at)
    } else
      for (const at of row) {
        if (text[at] === character) next.add(at + 1)
        if (text[at] === ANY) next.add(at)
      }
    row = closed(next, text)
    if (row.size === 0) return false
  }
  return row.has(text.length)
}

/** A variable may expand to nothing. */
function closed(row: Set<number>, text: string): Set<number> {
  for (const at of row) if (text[at] === ANY) row.add(at + 1)
  return row
}
