import path from 'node:path'
import type { parseSync, transformSync } from 'rolldown/utils'

/** One source as a function that asks for what it imports and returns what it exports. */
export interface Converted {
  /** A method of an object literal; the second line of it is the first of what `map` is of. */
  readonly code: string
  /** From `code` without its first line to the source. */
  readonly mappings: string
  /** Names that are taken from other sources, by these. */
  readonly imports: Readonly<Record<string, readonly string[]>>
  /** Sources that are loaded when they are needed. */
  readonly late: readonly string[]
  readonly exports: readonly string[]
  /** Sources all of whose names are exported again. */
  readonly stars: readonly string[]
  /** Parts of bundled packages that are asked for. */
  readonly packages: readonly string[]
}

type Utils = { readonly parseSync: typeof parseSync; readonly transformSync: typeof transformSync }
type ModuleRecord = ReturnType<typeof parseSync>['module']
type StaticImport = ModuleRecord['staticImports'][number]
type Edit = readonly [start: number, end: number, instead: string]
type Kind = { readonly kind: string; readonly name: string | null }

/** The name of the package that a specifier is of; undefined for a file and for what Node brings. */
export function packageOf(specifier: string): string | undefined {
  return /^(?:[./]|node:)/.test(specifier) ? undefined : /^(@[^/]+\/)?[^/]+/.exec(specifier)?.[0]
}

/** TypeScript that Node refuses, because it is more than types: enums, namespaces, parameter properties, `import x =`. */
const NOT_TYPES_ALONE =
  /^\s*(?:export |declare |const )*(?:enum|namespace|module) [\w$.]+ \{|[(,]\s*(?:public|private|protected|readonly|override) (?:readonly )?\w+ ?[:?=]|^\s*(?:export )?import \w+ =|^\s*export =/m

/** Lines stay where they are. */
const blank = (text: string): string => text.replace(/[^\n]/g, '')
function refuse(sentence: string): never {
  throw new Error(sentence)
}

/**
 * Makes `source`, the file `name` below the checkout, such a function: imports become constants, because nothing that is
 * exported changes later, and there are no circles (links.ts). Throws for what is not TypeScript, and for the few things that
 * this would do otherwise than Node does: such sources have to run as they are. `bundled`: packages that are inside.
 */
export function convert(utils: Utils, name: string, source: string, bundled: ReadonlySet<string>): Converted {
  const options = { tsconfig: false, sourcemap: true, typescript: { onlyRemoveTypeImports: true } } as const
  if (NOT_TYPES_ALONE.test(source)) refuse('Node strips types, and makes nothing of them')
  const made = utils.transformSync(name, source, options)
  const text = made.code.replace(/^export \{\};$/gm, blank)
  const { module: record, errors, comments } = utils.parseSync(name.replace(/ts$/, 'js'), text)
  if (made.errors.length + errors.length > 0) refuse('this is not TypeScript')
  const links = new Links(name, bundled)
  const edits = [...rewriteStatements(text, record, links), ...rewriteCalls(text, record, links)]
  for (const { start, end } of comments) edits.push([start, end, blank(text.slice(start, end))])
  const code = withEdits(text, edits).replace(/\bload\("([^"]+)"\)/g, (whole, wanted: string) =>
    links.isBundled(wanted) ? links.from(wanted, { kind: 'Default', name: null }) : whole,
  )
  const { head, imports, late, stars, packages } = links
  const given = [...stars.map((_, at) => `...$${at}`), ...[...links.exports].map((pair) => pair.join(': '))]
  return {
    code: `${JSON.stringify(name)}($of, $default, $later, $meta) {${head.join(' ')}\n${code}\nreturn { __proto__: null, ${given.join(', ')} }}`,
    mappings: made.map?.mappings ?? '',
    imports: Object.fromEntries(Object.entries(imports).map(([from, names]) => [from, [...new Set(names)]])),
    late,
    exports: [...links.exports.keys()],
    stars,
    packages,
  }
}

/** What a source takes from others and gives, gathered statement by statement. */
class Links {
  readonly head: string[] = []
  readonly imports: Record<string, string[]> = {}
  readonly late: string[] = []
  readonly exports = new Map<string, string>()
  readonly stars: string[] = []
  readonly packages: string[] = []
  readonly #name: string
  readonly #bundled: ReadonlySet<string>
  constructor(name: string, bundled: ReadonlySet<string>) {
    this.#name = name
    this.#bundled = bundled
  }

  isBundled(specifier: string): boolean {
    return this.#bundled.has(packageOf(specifier) ?? '')
  }

  /** The source that `specifier` is, by its name below the checkout. */
  file(specifier: string): string {
    const file = path.posix.join(this.#name, '..', specifier)
    return file.endsWith('.ts') ? file : refuse(`${specifier} is no source`)
  }

  /** Code that gives what `specifier` exports, or the one thing of it that is named. */
  from(specifier: string, imported?: Kind): string {
    const isFile = /^[./]/.test(specifier)
    const wanted = isFile ? this.file(specifier) : specifier
    if (isFile) (this.imports[wanted] ??= []).push(...(imported?.kind === 'Name' ? [String(imported.name)] : []))
    else if (this.isBundled(specifier)) this.packages.push(specifier)
    if (imported?.kind === 'Name') return `$of(${JSON.stringify(wanted)}).${imported.name}`
    if (imported?.kind !== 'Default') return `$of(${JSON.stringify(wanted)})`
    return isFile ? refuse('sources have no default exports') : `$default(${JSON.stringify(wanted)})`
  }
}

/** Imports become constants before the first line, in their order; exports what is returned. */
function rewriteStatements(text: string, { staticImports, staticExports }: ModuleRecord, links: Links): Edit[] {
  const edits: Edit[] = []
  const remove = (start: number, end: number): void => void edits.push([start, end, blank(text.slice(start, end))])
  // A list of what was imported counts as part of the import.
  const starts = new Set(staticImports.map(({ start }) => start))
  const statements = [...staticImports, ...staticExports.filter(({ start }) => !starts.has(start))]
  for (const statement of statements.toSorted((one, other) => one.start - other.start)) {
    const { start, end } = statement
    const isImport = 'moduleRequest' in statement
    const from = isImport ? statement.moduleRequest.value : statement.entries[0]?.moduleRequest?.value
    if (isImport) links.head.push(...constants(statement, links))
    else if (from !== undefined) links.head.push(`${links.from(from)};`)
    if (from !== undefined || isListed(text, start)) remove(start, end)
    else if (/^export (?:const|class|function|async function)\b/.test(text.slice(start, start + 30)))
      edits.push([start, start + 'export'.length, '      '])
    else refuse('what is exported may change')
  }
  for (const { start, entries } of staticExports)
    for (const { start: at, moduleRequest, importName, exportName, localName } of entries) {
      if (starts.has(start)) remove(text.lastIndexOf('export', at), text.indexOf('}', at) + 1)
      const from = moduleRequest?.value
      const [name, local] = [String(exportName.name), String(localName.name)]
      if (importName.kind === 'AllButDefault' && from?.startsWith('.')) {
        links.head.push(`const $${links.stars.length} = ${links.from(from)};`)
        links.stars.push(links.file(from))
      } else if (exportName.kind !== 'Name') refuse('what is exported has no name')
      else if (from !== undefined) links.exports.set(name, links.from(from, importName))
      else if (
        !isListed(text, start) ||
        new RegExp(`\\b(?:const|class|function\\*?) ${local.replaceAll('$', '\\$')}\\b`).test(text)
      )
        links.exports.set(name, local)
      else refuse('what is exported may change')
    }
  return edits
}

/** What an import declares: names together, which compiles to less. */
function constants({ moduleRequest, entries }: StaticImport, links: Links): string[] {
  const from = moduleRequest.value
  const [names, others]: [string[], string[]] = [[], []]
  for (const { importName, localName } of entries) {
    const value = links.from(from, importName)
    if (importName.kind === 'Name') names.push(`${importName.name}: ${localName.value}`)
    else others.push(`const ${localName.value} = ${value};`)
  }
  return [`const { ${names.join(', ')} } = ${links.from(from)};`, ...others]
}

const isListed = (text: string, start: number): boolean => text.startsWith('export {', start)

/** What looks like a call and belongs to modules: `import()` of a source, and `import.meta`. */
function rewriteCalls(text: string, { dynamicImports, importMetas }: ModuleRecord, links: Links): Edit[] {
  const edits: Edit[] = []
  for (const { start, end, moduleRequest } of dynamicImports) {
    const wanted = /^["']([^"'\\]+)["']$/.exec(text.slice(moduleRequest.start, moduleRequest.end))?.[1]
    if (wanted === undefined || links.isBundled(wanted)) refuse('what is loaded late is not known')
    if (!/^[./]/.test(wanted)) continue
    links.late.push(links.file(wanted))
    edits.push([start, end, `$later(${JSON.stringify(links.file(wanted))})`])
  }
  for (const { start, end } of importMetas)
    if (/^\.(?:url|dirname|filename)\b/.test(text.slice(end))) edits.push([start, end, '$meta()'])
    else refuse('import.meta is asked for something else')
  return edits
}

function withEdits(text: string, edits: readonly Edit[]): string {
  let written = ''
  let at = 0
  for (const [start, end, instead] of edits.toSorted((one, other) => one[0] - other[0])) {
    // Twice the same, or a comment within a statement.
    if (start < at) continue
    written += text.slice(at, start) + instead
    at = end
  }
  return written + text.slice(at)
}
