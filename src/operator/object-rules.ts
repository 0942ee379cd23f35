import type { KubeObject } from '../kube/index.ts'
import { type Loading, parseObjects, type Problem } from '../load/index.ts'

/** `path: message` of a problem, as `validate` prints it, without the file and line that an object does not have. */
export const formatProblem = ({ path, message }: Problem): string => (path === '' ? message : `${path}: ${message}`)

/** Distinct problems, formatted. */
export const formatProblems = (problems: readonly Problem[]): string[] => [...new Set(problems.map(formatProblem))]

/** The result of `validate` for one object. */
export interface ValidatedObject {
  readonly loaded: Loading
  readonly problems: readonly string[]
  readonly warnings: readonly string[]
}

/** The object as written: without server-managed metadata and status, which may belong to a newer release. */
export const asWritten = ({ apiVersion, kind, metadata: { name, namespace }, spec }: KubeObject): KubeObject => ({
  apiVersion,
  kind,
  metadata: { name, ...(namespace === undefined ? {} : { namespace }) },
  spec,
})

/** Validates one object by the rules of `validate`, without its references. */
export function validateObject(object: KubeObject, apiGroup: string): ValidatedObject {
  const loaded = parseObjects([asWritten(object)], { apiGroup })
  return { loaded, problems: formatProblems(loaded.problems), warnings: formatProblems(loaded.warnings) }
}
