import { readdirSync } from 'node:fs'
import path from 'node:path'
import ts from 'typescript-api'
import { sourcePaths, treeOf, type SourceFile } from './architecture.ts'

/** Lines of all files of one room. */
const MOST_ROOM_LINES = 6000
/** Files directly in one folder. */
const MOST_FLAT_FILES = 25
/** Lines of one function, without those of the functions in it: a factory is a list of small ones. */
const MOST_FUNCTION_LINES = 80
/** Rooms that may export a word of their own by one name. */
const MOST_MEANINGS = 2

/** Circles of files that import each other, whatever they import; each as its files in order of their names. */
export function circles(files: readonly SourceFile[]): string[][] {
  const targets = new Map(
    files.map((file) => [
      file.path,
      file.imports
        .filter((specifier) => specifier.startsWith('.'))
        .map((specifier) => path.posix.normalize(path.posix.join(path.posix.dirname(file.path), specifier))),
    ]),
  )
  const found: string[][] = []
  const order = new Map<string, number>()
  const lowest = new Map<string, number>()
  const stack: string[] = []
  const visit = (file: string): void => {
    order.set(file, order.size)
    lowest.set(file, order.get(file) ?? 0)
    stack.push(file)
    for (const next of targets.get(file) ?? []) {
      if (!targets.has(next)) continue
      if (!order.has(next)) visit(next)
      if (stack.includes(next)) lowest.set(file, Math.min(lowest.get(file) ?? 0, lowest.get(next) ?? 0))
    }
    if (lowest.get(file) !== order.get(file)) return
    const circle = stack.splice(stack.indexOf(file))
    if (circle.length > 1) found.push(circle.sort())
  }
  for (const file of targets.keys()) if (!order.has(file)) visit(file)
  return found.sort(([one = ''], [other = '']) => (one < other ? -1 : 1))
}

/** Rooms that are too large, and folders that are too flat; a sentence each. */
export function crowded(files: readonly SourceFile[]): string[] {
  const lines = new Map<string, number>()
  const flat = new Map<string, number>()
  for (const file of files) {
    const [room = ''] = file.path.split('/')
    const folder = path.posix.dirname(file.path)
    lines.set(room, (lines.get(room) ?? 0) + file.lines)
    flat.set(folder, (flat.get(folder) ?? 0) + 1)
  }
  return [
    ...[...lines]
      .filter(([, count]) => count > MOST_ROOM_LINES)
      .map(([room, count]) => `${room}: ${count} lines, ${MOST_ROOM_LINES} at most`),
    ...[...flat]
      .filter(([, count]) => count > MOST_FLAT_FILES)
      .map(([folder, count]) => `${folder}: ${count} files side by side, ${MOST_FLAT_FILES} at most`),
  ]
}

/** What the syntax tree of one file says beyond its imports. */
interface Shape {
  readonly file: string
  readonly exports: readonly string[]
  /** Functions that are too long, a sentence each. */
  readonly long: readonly string[]
}

/** Every `.ts` file below `root`, for `longFunctions` and `words`. */
export const readShapes = (root: string): Shape[] =>
  sourcePaths(root)
    .filter((name) => !name.endsWith('.d.ts'))
    .map((name) => shapeOf(root, name))

/** Functions over `MOST_FUNCTION_LINES`, a sentence each. */
export const longFunctions = (shapes: readonly Shape[]): string[] => shapes.flatMap(({ long }) => long)

/** Words that more than two rooms export, each with a meaning of its own; a sentence each. */
export function words(shapes: readonly Shape[]): string[] {
  const rooms = new Map<string, Set<string>>()
  for (const { file, exports } of shapes)
    for (const name of exports) rooms.set(name, (rooms.get(name) ?? new Set()).add(file.split('/')[0] ?? ''))
  return [...rooms]
    .filter(([, owners]) => owners.size > MOST_MEANINGS)
    .map(([name, owners]) => `${name}: ${[...owners].sort().join(', ')}`)
}

/** Files that are no TypeScript; those that a browser reads as they are come from the folders in `pages`. */
export const scripts = (root: string, pages: readonly string[]): string[] =>
  readdirSync(root, { recursive: true, encoding: 'utf8' })
    .map((name) => name.split(path.sep).join('/'))
    .filter((name) => /\.(js|mjs|cjs)$/.test(name) && !pages.some((page) => name.startsWith(`${page}/`)))

function shapeOf(root: string, name: string): Shape {
  const tree = treeOf(root, name)
  const lineOf = (position: number): number => tree.getLineAndCharacterOfPosition(position).line
  const lines = (node: ts.Node): number => lineOf(node.end) - lineOf(node.getStart(tree)) + 1
  const long: string[] = []
  const visit = (node: ts.Node): void => {
    if (isFunction(node)) {
      const own = lines(node) - inside(node).reduce((sum, inner) => sum + lines(inner) - 1, 0)
      if (own > MOST_FUNCTION_LINES)
        long.push(
          `${name}:${lineOf(node.getStart(tree)) + 1}: a function of ${own} lines, ${MOST_FUNCTION_LINES} at most`,
        )
    }
    ts.forEachChild(node, visit)
  }
  visit(tree)
  return { file: name, exports: exportsOf(tree), long }
}

const isFunction = (node: ts.Node): boolean =>
  ts.isFunctionDeclaration(node) ||
  ts.isFunctionExpression(node) ||
  ts.isArrowFunction(node) ||
  ts.isMethodDeclaration(node) ||
  ts.isConstructorDeclaration(node)

/** The functions directly inside of one. */
function inside(node: ts.Node): ts.Node[] {
  const found: ts.Node[] = []
  const visit = (child: ts.Node): void => {
    if (isFunction(child)) found.push(child)
    else ts.forEachChild(child, visit)
  }
  ts.forEachChild(node, visit)
  return found
}

/** Names that a file declares and exports. */
function exportsOf(tree: ts.SourceFile): string[] {
  return tree.statements.flatMap((statement) => {
    if (!ts.canHaveModifiers(statement)) return []
    const isExported = ts.getModifiers(statement)?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword) === true
    if (!isExported) return []
    if (ts.isVariableStatement(statement))
      return statement.declarationList.declarations.flatMap(({ name }) => (ts.isIdentifier(name) ? [name.text] : []))
    const { name } = statement as ts.DeclarationStatement
    return name === undefined ? [] : [name.getText(tree)]
  })
}
