import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { CRD_KINDS, type CrdKind, customResourceDefinition } from '../../../../../src/load/publish/index.ts'
import type { JudgedObject } from './objects.ts'
import type { Spelling } from '../../../resources/verdicts/spellings.ts'

/** Where the verdicts of an API server's own code lie; written by `npm run test:cluster -- --record`. */
export const RECORD_PATH = path.join(import.meta.dirname, '../../../resources/verdicts/recorded.json')

/** Verdicts of an API server about objects, by their hashes. */
export interface Record {
  /** Hash of the definition that it was asked by. */
  readonly definition: string
  /** Hashes of ten characters each, one after the other, sorted. */
  readonly accepted: string
  readonly refused: string
}

/** The value of each spelling in kubectl, if the API server accepts it; null if either rejects it. */
export const SPELLINGS_PATH = path.join(import.meta.dirname, '../../../resources/verdicts/spellings.json')

/** Throws for a text that nothing is recorded about. */
export function openSpellings(): (spelling: Spelling) => unknown {
  const record = JSON.parse(readFileSync(SPELLINGS_PATH, 'utf8')) as { [hash: string]: unknown }
  return ({ text }) => {
    const object = record[hash(text)]
    if (object === undefined) throw new Error(`no verdict about this spelling, ${RENEW}`)
    return object
  }
}

export const recordOfSpellings = (objects: ReadonlyMap<Spelling, unknown>): { [hash: string]: unknown } =>
  Object.fromEntries([...objects].map(([{ text }, object]) => [hash(text), object]))

const LENGTH = 10
const RENEW = 'record the verdicts again: npm run test:cluster -- --record'
const hash = (value: unknown): string =>
  createHash('sha256').update(JSON.stringify(value)).digest('hex').slice(0, LENGTH)

export const hashOfDefinition = (kind: CrdKind): string => hash(customResourceDefinition('extauth.dev', kind))

/** The record of verdicts, in the order of `objects`. */
export function recordOf(objects: readonly JudgedObject[], verdicts: readonly boolean[]): { [kind: string]: Record } {
  const hashes = (kind: CrdKind, isAccepted: boolean): string =>
    objects
      .flatMap((one, index) => (one.kind === kind && verdicts[index] === isAccepted ? [hash(one.object)] : []))
      .sort()
      .join('')
  return Object.fromEntries(
    CRD_KINDS.map((kind) => [
      kind,
      { definition: hashOfDefinition(kind), accepted: hashes(kind, true), refused: hashes(kind, false) },
    ]),
  )
}

/** Looks verdicts up; throws for an object or a definition that no verdict is recorded for. */
export function openRecord(): (kind: CrdKind, object: unknown) => boolean {
  const record = JSON.parse(readFileSync(RECORD_PATH, 'utf8')) as { [kind: string]: Record }
  const known = new Map<string, boolean>()
  for (const kind of CRD_KINDS) {
    const { definition, accepted, refused } = record[kind] ?? { definition: '', accepted: '', refused: '' }
    if (definition !== hashOfDefinition(kind)) throw new Error(`the definition of ${kind} has changed, ${RENEW}`)
    for (const [list, verdict] of [
      [accepted, true],
      [refused, false],
    ] as const)
      for (let at = 0; at < list.length; at += LENGTH) known.set(`${kind} ${list.slice(at, at + LENGTH)}`, verdict)
  }
  return (kind, object) => {
    const verdict = known.get(`${kind} ${hash(object)}`)
    if (verdict === undefined) throw new Error(`no verdict about this ${kind}, ${RENEW}`)
    return verdict
  }
}
