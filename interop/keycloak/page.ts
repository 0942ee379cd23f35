import { readFileSync } from 'node:fs'
import path from 'node:path'

export type Members = Readonly<Record<string, unknown>>

/** The section below a heading of docs/keycloak.md. */
export interface Section {
  readonly json: readonly Members[]
  readonly yaml: readonly string[]
}

const PAGE = readFileSync(path.join(import.meta.dirname, '..', '..', 'docs', 'keycloak.md'), 'utf8')

const blocks = (text: string, language: string): readonly string[] =>
  [...text.matchAll(new RegExp(`^\`\`\`${language}\\n([^]*?)^\`\`\`$`, 'gm'))].map(([, block = '']) => block)

/** The section with this heading, its blocks in their order. Throws where the page has none. */
export function section(heading: string): Section {
  const text = PAGE.split(/^#{2,3} /m).find((each) => each.startsWith(`${heading}\n`))
  if (text === undefined) throw new Error(`docs/keycloak.md has no section "${heading}"`)
  return { json: blocks(text, 'json').map((block) => JSON.parse(block) as Members), yaml: blocks(text, 'yaml') }
}

/** The one client of members that are said together; attributes and mappers of all of them. */
export function merged(...parts: readonly Members[]): Members {
  const attributes = Object.assign({}, ...parts.map((part) => part['attributes'])) as Members
  return Object.assign({}, ...parts, { attributes }) as Members
}
