import { createReadStream } from 'node:fs'
import { callerIdentity, type Claims, type ClaimValue, Secret } from '../core/index.ts'
import type { Io } from './io.ts'
import { UsageError } from './options.ts'

/** Whose request is explained. Nothing of it is verified. */
export interface ExplainedCaller {
  readonly claims: Claims
  readonly issuer: string
  readonly subject: string
  readonly identity: string
  readonly format: 'jwt' | 'opaque'
  /** SHA-256 of the token, where there is one. */
  readonly tokenDigest?: string
}

/** As much as the largest answer of an introspection endpoint. */
const MAX_BYTES = 1024 * 1024

/** The caller of a file with claims as JSON; `-` is standard input. Throws `UsageError`. */
export async function callerOfClaims(file: string, io: Io): Promise<ExplainedCaller> {
  const claims = parseClaims(await read(file, io))
  if (claims === undefined) throw new UsageError(`${file} does not hold a JSON object`)
  return { ...namesOf(claims, ''), format: 'jwt' }
}

/** The caller of a file with an access token; `-` is standard input. Its signature is not checked. Throws `UsageError`. */
export async function callerOfToken(file: string, io: Io): Promise<ExplainedCaller> {
  const token = (await read(file, io)).trim().replace(/^bearer +/i, '')
  if (!/^[A-Za-z0-9\-._~+/]+=*$/.test(token)) throw new UsageError(`${file} does not hold an access token`)
  const [header = '', payload = '', signature, ...more] = token.split('.')
  const isThreePart = signature !== undefined && more.length === 0
  const claims = isThreePart && parseClaims(decode(header)) !== undefined ? parseClaims(decode(payload)) : undefined
  const tokenDigest = new Secret(token).digest()
  if (claims === undefined) return { ...namesOf(empty(), tokenDigest), format: 'opaque', tokenDigest }
  return { ...namesOf(claims, tokenDigest), format: 'jwt', tokenDigest }
}

async function read(file: string, io: Io): Promise<string> {
  if (file === '-') return io.stdin()
  const chunks: Buffer[] = []
  let length = 0
  try {
    for await (const chunk of createReadStream(file) as AsyncIterable<Buffer>) {
      length += chunk.length
      if (length > MAX_BYTES) throw new UsageError(`${file} is larger than 1 MiB`)
      chunks.push(chunk)
    }
  } catch (error) {
    if (error instanceof UsageError) throw error
    const { code = 'error' } = error as { code?: string }
    throw new UsageError(`${file} cannot be read (${code})`)
  }
  return Buffer.concat(chunks).toString('utf8')
}

const namesOf = (claims: Claims, tokenDigest: string) => ({
  claims,
  issuer: textOf(claims['iss']),
  subject: textOf(claims['sub']),
  identity: callerIdentity(claims, tokenDigest),
})
const decode = (segment: string): string => Buffer.from(segment, 'base64url').toString('utf8')
const textOf = (value: ClaimValue | undefined): string => (typeof value === 'string' ? value : '')
const empty = (): Claims => Object.create(null) as Claims

function parseClaims(text: string): Claims | undefined {
  try {
    const value: unknown = JSON.parse(text, withoutPrototype)
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Claims) : undefined
  } catch {
    return undefined
  }
}

/** Claims have no prototype, so that one called `constructor` is just a claim. */
function withoutPrototype(_name: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  const bare = Object.create(null) as Record<string, unknown>
  for (const [name, member] of Object.entries(value)) bare[name] = member
  return bare
}
