import { z } from 'zod'
import { callerIdentity, type Claims, identityBasis, isIntrospectionAnswer } from '../../core/index.ts'
import { JsonError, parseJsonObject } from '../../http/index.ts'
import { canonicalJson } from '../../resources/index.ts'
import { readInput } from './explain-input.ts'
import { type Io, UsageError } from '../../compose/index.ts'

/** 200 requests with claims of the maximum size of an introspection response. */
const MAX_BYTES = 32 * 1024 * 1024

const text = () => z.string().max(4096)

/** Tags, source identity and policies recorded with claims; without claims, values are missing. */
const ATTRIBUTES = z.object({
  tags: z.array(z.object({ key: text(), value: text(), transitive: z.boolean() })),
  sourceIdentity: text().optional(),
  policy: text().optional(),
  policyArns: z.array(text()),
  externalId: text().optional(),
})

/** The fields of a `GET /decisions` entry that are read; others are ignored. */
const RECORD = z.object({
  atMs: z.number(),
  requestId: text(),
  route: text(),
  decision: z
    .object({
      config: text(),
      choice: z.object({
        roleArn: text().optional(),
        by: z.enum(['mapping', 'fallback']).optional(),
        attributes: ATTRIBUTES.optional().catch(undefined),
      }),
      session: z.object({ name: text().optional(), changes: z.array(text()) }).optional(),
      refusal: text().optional(),
    })
    .optional(),
  mcp: z
    .object({
      method: text(),
      name: text(),
      uri: text(),
      args: z.record(z.string(), z.unknown()).optional(),
      annotations: z.record(z.string(), z.boolean()).default({}),
    })
    .optional(),
  rules: z.object({ allowed: z.boolean(), rule: text().optional(), missingScopes: z.array(text()) }).optional(),
  claims: z.record(z.string(), z.unknown()).optional(),
})
const FILE = z.union([z.object({ decisions: z.array(RECORD) }), z.array(RECORD)])

/** A recorded request with the claims of its caller. */
export type RecordedDecision = Omit<z.output<typeof RECORD>, 'claims'> & {
  readonly claims: Claims
  /** The claims as JSON. */
  readonly claimsText: string
}

/** Claims that differ between tokens of one caller. */
const VOLATILE: ReadonlySet<string> = new Set(['exp', 'iat', 'nbf', 'jti', 'auth_time'])

export interface RecordedDecisions {
  /** The latest request of each caller on each route (and of each kind if rules decided), oldest first; several if a caller's claims changed. */
  readonly records: readonly RecordedDecision[]
  /** Records without claims, which cannot be evaluated. */
  readonly withoutClaims: number
}

/**
 * Reads a response of `GET /decisions` from a file (`-` is standard input). Throws `UsageError` if it is invalid, or
 * if no entry has claims.
 */
export async function readDecisions(file: string, io: Pick<Io, 'stdin'>): Promise<RecordedDecisions> {
  const parsed = FILE.safeParse(jsonIn(await readInput(file, io, MAX_BYTES), file))
  if (!parsed.success) throw new UsageError(`${file} is not a response of GET /decisions of the admin listener`)
  const entries = Array.isArray(parsed.data) ? parsed.data : parsed.data.decisions
  const newest = new Map<string, RecordedDecision>()
  let withoutClaims = 0
  for (const { claims: written, ...entry } of entries.toSorted((a, b) => a.atMs - b.atMs)) {
    if (written === undefined) withoutClaims += 1
    else {
      const claimsText = JSON.stringify(written)
      const record = { ...entry, claims: claimsIn(claimsText, file), claimsText }
      const steady = Object.entries(written).filter(([name]) => !VOLATILE.has(name))
      const key = canonicalJson([entry.route, Object.fromEntries(steady), entry.mcp ?? null])
      newest.delete(key)
      newest.set(key, record)
    }
  }
  if (newest.size === 0)
    throw new UsageError(
      entries.length === 0
        ? `${file} has no decisions; only routes of type cloudSts or with rules record them`
        : `${file} has no claims; start the proxy with --show-claims to record them`,
    )
  return { records: [...newest.values()], withoutClaims }
}

/** Whether claims determine the session name. They do not if it is derived from the token. */
export const isSessionNameSteady = ({ claims, decision }: RecordedDecision): boolean =>
  decision?.session?.changes.length === 0 ||
  identityBasis(callerIdentity(claims, '', isIntrospectionAnswer(claims))) !== 'token'

function jsonIn(content: string, file: string): unknown {
  try {
    return JSON.parse(content)
  } catch {
    throw new UsageError(`${file} is not valid JSON`)
  }
}

function claimsIn(claimsText: string, file: string): Claims {
  try {
    return parseJsonObject(claimsText)
  } catch (error) {
    if (!(error instanceof JsonError)) throw error
    throw new UsageError(`${file} has claims that the proxy rejects: ${error.message}`)
  }
}
