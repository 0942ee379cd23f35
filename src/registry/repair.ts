import type { z } from 'zod'
import { isObject } from './document.ts'
import { OFFICIAL_META } from './server-json.ts'

type Path = readonly PropertyKey[]
type Issue = Pick<z.core.$ZodIssue, 'path' | 'message'>
/** Validates an entry; returns its problems. */
type Validate = (item: unknown) => readonly Issue[]

/** Maximum number of removed fields before an entry is skipped. */
const MAX_REMOVED = 20

/** A valid entry, and the paths of its removed fields. */
export interface Repaired {
  readonly item: unknown
  readonly lost: readonly string[]
}

export const sentenceOf = ({ path, message }: Issue): string => {
  const at = path.map(String).join('.')
  return `${at}${at === '' ? '' : ': '}${message}`
}

/**
 * Removes invalid optional fields of an entry: `null` counts as absent. An invalid list element is removed as a whole,
 * since half a package or link would be wrong. Undefined if a required field or the status is invalid.
 */
export function repair(item: unknown, validate: Validate): Repaired | undefined {
  const copy: unknown = structuredClone(item)
  const lost: string[] = []
  for (;;) {
    const [issue] = validate(copy)
    if (issue === undefined) return { item: copy, lost }
    const at = removable(copy, issue.path)
    if (at === undefined || lost.length === MAX_REMOVED) return undefined
    if (valueAt(copy, at) !== null) lost.push(sentenceOf(issue))
    remove(copy, at)
  }
}

/** The path to remove for an issue; undefined if the entry is invalid. */
function removable(item: unknown, path: Path): Path | undefined {
  if (path.length > 0 && valueAt(item, path) === null) return path
  const start = isObject(item) && Object.hasOwn(item, 'server') ? path.indexOf('server') + 1 : 0
  if (path[0] === '_meta' && path[1] === OFFICIAL_META)
    return path[2] === 'status' ? undefined : existing(item, path, 3)
  const member = path.slice(0, start + 1)
  const isElement = Array.isArray(valueAt(item, member)) && path.length > member.length
  return existing(item, path, start + (isElement ? 2 : 1))
}

const existing = (item: unknown, path: Path, length: number): Path | undefined => {
  const at = path.slice(0, length)
  return at.length > 0 && valueAt(item, at) !== undefined ? at : undefined
}

function valueAt(item: unknown, path: Path): unknown {
  let value = item
  for (const key of path) value = typeof value === 'object' && value !== null ? Reflect.get(value, key) : undefined
  return value
}

function remove(item: unknown, path: Path): void {
  const parent = valueAt(item, path.slice(0, -1))
  const key = path.at(-1)
  if (Array.isArray(parent) && typeof key === 'number') parent.splice(key, 1)
  else if (typeof parent === 'object' && parent !== null && key !== undefined) Reflect.deleteProperty(parent, key)
}
