import { printable } from '../../core/index.ts'
import type { Place, TextDocument } from '../yaml/yaml.ts'

/** One problem in one document. */
export interface Problem extends Place {
  readonly file: string
  /** Empty for a text that could not be parsed. */
  readonly kind: string
  readonly name: string
  /** `spec.routes[0].path`; empty for the document as a whole. */
  readonly path: string
  /** The observed and the expected value. */
  readonly message: string
  /** `type_not_runnable` for types that load but cannot run in this version (decisions §1). */
  readonly reason: 'config_error' | 'type_not_runnable'
  /** Names of the affected routes; absent without any, or if the document identifies them. */
  readonly routes?: readonly string[]
}

/** A parsed document with the locations of its parts. */
export interface Located<T> {
  readonly document: T
  readonly file: string
  /** First line of the document, from 1. */
  readonly line: number
  /** A problem with one part of this document. */
  problem(path: readonly PropertyKey[], message: string, options?: ProblemOptions): Problem
}

export interface ProblemOptions {
  readonly at?: 'key' | 'value'
  readonly reason?: Problem['reason']
}

/** Creates the problems of one document; `prefix` is the path of the object inside it (items of a List). */
export function problemMaker(
  file: string,
  text: TextDocument,
  prefix: readonly PropertyKey[],
  kind: string,
  name: string,
): Located<unknown>['problem'] {
  return (path, message, options = {}) => {
    const route = kind === 'ProxyConfig' ? routeNameAt(text.value, prefix, path) : undefined
    return {
      file,
      ...text.locate([...prefix, ...path], options.at),
      kind,
      name,
      path: pathText([...prefix, ...path]),
      message,
      reason: options.reason ?? 'config_error',
      ...(route === undefined ? {} : { routes: [route] }),
    }
  }
}

/** The name of the route of a ProxyConfig that `path` leads into. */
export function routeNameAt(value: unknown, prefix: readonly PropertyKey[], path: readonly PropertyKey[]) {
  const [spec, routes, index] = path
  if (spec !== 'spec' || routes !== 'routes' || index === undefined) return undefined
  const name = [...prefix, spec, routes, index, 'name'].reduce(
    (object, step) =>
      typeof object === 'object' && object !== null && Object.hasOwn(object, step)
        ? (object as Readonly<Record<PropertyKey, unknown>>)[step]
        : undefined,
    value,
  )
  return typeof name === 'string' && name !== '' ? name.slice(0, 63) : undefined
}

/** The same location for a document without its outermost key: a separate `auth` section. */
export function withoutFirstStep<T>(place: Located<T>): Located<T> {
  return { ...place, problem: (path, message, options) => place.problem(path.slice(1), message, options) }
}

/** `spec.routes[0].path`; names that are not identifiers are quoted. */
export function pathText(path: readonly PropertyKey[]): string {
  return path
    .map((step, index) => {
      if (typeof step === 'number') return `[${step}]`
      const name = String(step)
      if (!/^[A-Za-z_$][\w$-]*$/.test(name)) return `[${JSON.stringify(name.slice(0, 64))}]`
      return index === 0 ? name : `.${name}`
    })
    .join('')
}

/** A problem with a file or an option instead of a document. */
export const fileProblem = (file: string, message: string, place: Place = { line: 1, column: 1 }): Problem => ({
  file,
  line: place.line,
  column: place.column,
  kind: '',
  name: '',
  path: '',
  message,
  reason: 'config_error',
})

/** The longest name of an object in a cluster. */
const MAX_NAME = 253

/**
 * `file:line:column  kind/name  path  message (route "name")`, which editors and terminals turn into links; options
 * have no line. Always a single line, whatever the document contains.
 */
export function renderProblem(problem: Problem): string {
  const subject =
    problem.kind === '' ? '' : problem.name === '' ? problem.kind : `${problem.kind}/${problem.name.slice(0, MAX_NAME)}`
  const isNoFile = problem.file.startsWith('--') || problem.file.startsWith('(')
  const place = isNoFile ? problem.file : `${problem.file}:${problem.line}:${problem.column}`
  const line = [place, subject, problem.path, problem.message].filter((part) => part !== '').join('  ')
  return printable(line + routesText(problem.routes ?? []))
}

/** Maximum routes named in a line. */
const MAX_ROUTES = 5

function routesText(routes: readonly string[]): string {
  if (routes.length === 0) return ''
  const named = routes.slice(0, MAX_ROUTES).map((name) => JSON.stringify(name))
  const more = routes.length > MAX_ROUTES ? ` and ${routes.length - MAX_ROUTES} more` : ''
  return ` (route${routes.length === 1 ? '' : 's'} ${named.join(', ')}${more})`
}
