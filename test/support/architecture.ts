import { readFileSync, readdirSync, statSync } from 'node:fs'
import path from 'node:path'
import ts from 'typescript-api'

/** A row of the module table in ARCHITECTURE.md. */
export interface Module {
  readonly level: number
  readonly name: string
  /** `below`: every module of a lower level. */
  readonly mayImport: readonly string[] | 'below'
}

/** The imports and casts of one source file, from its syntax tree. */
export interface SourceFile {
  /** Path below the root, `/` as separator. */
  readonly path: string
  readonly imports: readonly string[]
  /** The static imports among `imports`, without type-only ones. */
  readonly loads: readonly string[]
  /** Names of types that the file casts to with `as`. */
  readonly casts: readonly string[]
  readonly readsEnvironment: boolean
}

/** Parses the module table of ARCHITECTURE.md. */
export function readModules(markdown: string): Module[] {
  const modules: Module[] = []
  for (const line of markdown.split('\n')) {
    const cells = line.split('|').map((cell) => cell.trim())
    const name = /^`([a-z]+)`$/.exec(cells[2] ?? '')?.[1]
    if (!/^\d$/.test(cells[1] ?? '') || name === undefined) continue
    const may = cells[4] ?? ''
    modules.push({
      level: Number(cells[1]),
      name,
      mayImport: may === 'below' ? 'below' : may.split(/\s+/).filter((word) => word !== '–'),
    })
  }
  return modules
}

/** Paths of all `.ts` files below `root`, `/` as separator. */
export const sourcePaths = (root: string): string[] =>
  readdirSync(root, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts') && statSync(path.join(root, name)).isFile())
    .map((name) => name.split(path.sep).join('/'))

/** Every `.ts` file below `root`, parsed. */
export const readSources = (root: string): SourceFile[] => sourcePaths(root).map((name) => parse(root, name))

function parse(root: string, name: string): SourceFile {
  const tree = ts.createSourceFile(name, readFileSync(path.join(root, name), 'utf8'), ts.ScriptTarget.Latest, true)
  const imports: string[] = []
  const loads: string[] = []
  const casts: string[] = []
  let readsEnvironment = false
  const visit = (node: ts.Node): void => {
    if ((ts.isImportDeclaration(node) || ts.isExportDeclaration(node)) && node.moduleSpecifier !== undefined) {
      if (ts.isStringLiteral(node.moduleSpecifier)) {
        imports.push(node.moduleSpecifier.text)
        const isType = ts.isImportDeclaration(node) ? node.importClause?.isTypeOnly === true : node.isTypeOnly
        if (!isType) loads.push(node.moduleSpecifier.text)
      }
    } else if (ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword) {
      const [specifier] = node.arguments
      imports.push(specifier !== undefined && ts.isStringLiteral(specifier) ? specifier.text : '<computed>')
    } else if (
      ts.isImportTypeNode(node) &&
      ts.isLiteralTypeNode(node.argument) &&
      ts.isStringLiteral(node.argument.literal)
    ) {
      imports.push(node.argument.literal.text)
    } else if ((ts.isAsExpression(node) || ts.isTypeAssertionExpression(node)) && ts.isTypeReferenceNode(node.type)) {
      casts.push(node.type.typeName.getText(tree))
    } else if (
      ts.isPropertyAccessExpression(node) &&
      node.name.text === 'env' &&
      node.expression.getText(tree) === 'process'
    ) {
      readsEnvironment = true
    } else if (
      ts.isBindingElement(node) &&
      node.name.getText(tree) === 'env' &&
      node.parent.parent.getText(tree).includes('process')
    ) {
      readsEnvironment = true
    }
    ts.forEachChild(node, visit)
  }
  visit(tree)
  return { path: name, imports, loads, casts, readsEnvironment }
}

const moduleOf = (file: string): string => (file.includes('/') ? (file.split('/')[0] ?? '') : 'main')

/** Packages that only some modules may load, with the reason in ARCHITECTURE.md or the name itself. */
const CONFINED: Readonly<Record<string, readonly string[]>> = {
  undici: ['net', 'forward'],
  '@aws-sdk/client-sts': ['obtain'],
  '@bufbuild/cel': ['cel'],
  jose: ['oauth', 'authenticate', 'authserver', 'obtain'],
  'lru-cache': ['cache'],
  'prom-client': ['report'],
  '@modelcontextprotocol/server': ['elicitation'],
  ioredis: ['storage'],
}

/** The one file that may import lab/: everything else of the product runs without it. */
const LAB_IS_ENTERED_BY = 'cli/commands/command-table.ts'

const FORBIDDEN_NAMES = /(^|\/)(utils?|common|helpers?|shared|misc)(\.ts|\/|$)/

/** Rooms that know that they run in a process. */
const READ_THE_ENVIRONMENT: ReadonlySet<string> = new Set(['compose', 'cli', 'main'])

/** The entry point of a module, or of a lazily loaded part of it. */
const ENTRY_POINT = /^[a-z]+(\/[a-z-]+)?\/index\.ts$/

/** Returns the violations of the rules in `files`, one sentence each. */
export function violations(modules: readonly Module[], files: readonly SourceFile[]): string[] {
  const byName = new Map(modules.map((module) => [module.name, module]))
  const found: string[] = []
  for (const file of files) {
    const name = moduleOf(file.path)
    const module: Module | undefined = name === 'main' ? { level: 10, name, mayImport: 'below' } : byName.get(name)
    if (module === undefined) {
      found.push(`${file.path}: no module ${name} in ARCHITECTURE.md`)
      continue
    }
    if (FORBIDDEN_NAMES.test(file.path))
      found.push(`${file.path}: a file belongs to a module, not to a collection of helpers`)
    if (file.readsEnvironment && !READ_THE_ENVIRONMENT.has(module.name))
      found.push(`${file.path}: only compose, cli and main.ts read process.env`)
    for (const specifier of file.imports) found.push(...checkImport(file, module, specifier, byName))
  }
  return found
}

function checkImport(
  file: SourceFile,
  module: Module,
  specifier: string,
  modules: ReadonlyMap<string, Module>,
): string[] {
  if (specifier === '<computed>') return [`${file.path}: computed import`]
  if (!specifier.startsWith('.')) {
    const confined = Object.entries(CONFINED).find(([name]) => specifier === name || specifier.startsWith(`${name}/`))
    if (confined === undefined || confined[1].includes(module.name)) return []
    return [`${file.path}: ${confined[0]} belongs to ${confined[1].join(', ')}`]
  }
  const target = path.posix.normalize(path.posix.join(path.posix.dirname(file.path), specifier))
  if (target.startsWith('../lab/') && file.path === LAB_IS_ENTERED_BY) {
    return target === '../lab/cli/index.ts'
      ? []
      : [`${file.path}: enters lab by ${target}, its entry point is index.ts`]
  }
  if (target.startsWith('..')) return [`${file.path}: imports ${specifier}, outside of src`]
  const other = moduleOf(target)
  if (other === module.name) return []
  const problems: string[] = []
  if (!ENTRY_POINT.test(target))
    problems.push(`${file.path}: enters ${other} by ${target}, its entry point is index.ts`)
  const otherModule = modules.get(other)
  if (module.mayImport !== 'below' && !module.mayImport.includes(other))
    problems.push(`${file.path}: ${module.name} may not import ${other}`)
  if (otherModule !== undefined && otherModule.level >= module.level)
    problems.push(`${file.path}: ${other} is not below ${module.name}`)
  return problems
}

/**
 * Returns the violations of the rules of lab/, one sentence each: it imports modules by their entry points, and only a
 * dynamic import of the command table loads it.
 */
export function labViolations(
  modules: readonly Module[],
  lab: readonly SourceFile[],
  src: readonly SourceFile[],
): string[] {
  const isEntryPoint = (target: string): boolean =>
    target.startsWith('../src/') &&
    ENTRY_POINT.test(target.slice('../src/'.length)) &&
    names.has(moduleOf(target.slice('../src/'.length)))
  const names = new Set(modules.map(({ name }) => name))
  const found: string[] = []
  for (const file of lab) {
    if (FORBIDDEN_NAMES.test(file.path))
      found.push(`lab/${file.path}: a file belongs to a module, not to a collection of helpers`)
    if (file.readsEnvironment) found.push(`lab/${file.path}: reads process.env`)
    for (const specifier of file.imports) {
      const target = path.posix.normalize(path.posix.join(path.posix.dirname(file.path), specifier))
      if (specifier === '<computed>') found.push(`lab/${file.path}: computed import`)
      else if (specifier.startsWith('.') && target.startsWith('..') && !isEntryPoint(target))
        found.push(`lab/${file.path}: ${target} is not the entry point of a module`)
    }
  }
  for (const file of src) {
    const loaded = file.loads.map((specifier) => path.posix.join(path.posix.dirname(file.path), specifier))
    if (loaded.some((target) => target.startsWith('../lab/')))
      found.push(`${file.path}: loads the lab by a static import`)
  }
  return found
}

/** Stage brand → the files that cast to it. */
export function mints(files: readonly SourceFile[]): Record<string, string[]> {
  const stages = ['Matched', 'Known', 'Armed', 'Sealed']
  return Object.fromEntries(
    stages.map((stage) => [stage, files.filter((file) => file.casts.includes(stage)).map((file) => file.path)]),
  )
}
