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

/** An object as it is written: the server adds the other metadata, and an operator the status, which may be newer. */
export const asWritten = ({ apiVersion, kind, metadata: { name, namespace }, spec }: KubeObject): KubeObject => ({
  apiVersion,
  kind,
  metadata: { name, ...(namespace === undefined ? {} : { namespace }) },
  spec,
})

/** Validates one object, as it is written, by the rules of `validate`, without what it refers to. */
export function validateObject(object: KubeObject, apiGroup: string): ValidatedObject {
  const loaded = parseObjects([asWritten(object)], { apiGroup })
  return { loaded, problems: formatProblems(loaded.problems), warnings: formatProblems(loaded.warnings) }
}
