import { createReadStream } from 'node:fs'
import { shapeOf } from '../../oauth/index.ts'
import { callerIdentity, type Claims, type ClaimValue, isIntrospectionAnswer, Secret } from '../../core/index.ts'
import { JsonError, parseJsonObject } from '../../http/index.ts'
import { type Io, UsageError } from '../../compose/index.ts'

/** The caller of an explained request. Nothing is verified. */
export interface ExplainedCaller {
  readonly claims: Claims
  readonly issuer: string
  readonly subject: string
  readonly identity: string
  readonly format: 'jwt' | 'opaque'
  /** SHA-256 of the token, if there is one. */
  readonly tokenDigest?: string
}

/** Maximum size of an introspection response. */
const MAX_BYTES = 1024 * 1024

/** Reads claims as JSON: a file, `-` for standard input, or the object itself. Throws `UsageError`. */
export async function callerOfClaims(fileOrJson: string, io: Io): Promise<ExplainedCaller> {
  if (fileOrJson.trimStart().startsWith('{')) return callerOfClaimsText(fileOrJson, '--claims')
  return callerOfClaimsText(await readInput(fileOrJson, io), fileOrJson)
}

/** Parses claims as JSON; `label` is their location for messages. Throws `UsageError`. */
export function callerOfClaimsText(
  text: string,
  label: string,
  format: ExplainedCaller['format'] = 'jwt',
): ExplainedCaller {
  return { ...namesOf(claimsIn(text, label), ''), format }
}

/** Reads an access token from a file; `-` is standard input. Does not verify its signature. Throws `UsageError`. */
export async function callerOfToken(file: string, io: Io): Promise<ExplainedCaller> {
  const token = (await readInput(file, io)).trim().replace(/^bearer +/i, '')
  if (!/^[A-Za-z0-9\-._~+/]+=*$/.test(token))
    throw new UsageError(`${file} contains no access token; expected one bearer token`)
  const shape = shapeOf(token)
  if (shape.kind === 'malformed')
    throw new UsageError(`${file} contains a JWT that the proxy rejects: ambiguous JSON, or a non-canonical signature`)
  const tokenDigest = new Secret(token).digest()
  if (shape.kind === 'opaque') return { ...namesOf(empty(), tokenDigest), format: 'opaque', tokenDigest }
  return { ...namesOf(shape.jwt.payload, tokenDigest), format: 'jwt', tokenDigest }
}

/** Reads a file of at most `maxBytes`; `-` is standard input. Throws `UsageError`. */
export async function readInput(file: string, io: Pick<Io, 'stdin'>, maxBytes = MAX_BYTES): Promise<string> {
  if (file === '-') return io.stdin()
  const chunks: Buffer[] = []
  let length = 0
  try {
    for await (const chunk of createReadStream(file) as AsyncIterable<Buffer>) {
      length += chunk.length
      if (length > maxBytes) throw new UsageError(`${file} exceeds ${maxBytes / 1024 / 1024} MiB`)
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
  identity: callerIdentity(claims, tokenDigest, isIntrospectionAnswer(claims)),
})
const textOf = (value: ClaimValue | undefined): string => (typeof value === 'string' ? value : '')
const empty = (): Claims => Object.create(null) as Claims

/** Parses claims as the proxy does: no duplicate name, no prototype, the same limits. */
function claimsIn(text: string, file: string): Claims {
  try {
    return parseJsonObject(text)
  } catch (error) {
    if (!(error instanceof JsonError)) throw error
    throw new UsageError(`${file} is not a JSON object that the proxy accepts: ${error.message}`)
  }
}
