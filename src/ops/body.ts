import { type ClientRequest, Failure } from '../core/index.ts'

/** Admin requests are small. */
export const MAX_BODY_BYTES = 64 * 1024

/**
 * Reads the JSON body of a request; undefined without a body. Throws `body_too_large` above 64 KiB and `bad_request`
 * for other content. The server's request timeout applies.
 */
export async function readJsonBody(request: ClientRequest): Promise<unknown> {
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of request) {
    const bytes = chunk as Buffer
    length += bytes.length
    if (length > MAX_BODY_BYTES)
      throw new Failure('body_too_large', { limit: { amount: MAX_BODY_BYTES, unit: 'bytes' } })
    chunks.push(bytes)
  }
  if (length === 0) return undefined
  const type = request.headers['content-type']?.split(';')[0]?.trim().toLowerCase()
  if (type !== 'application/json') throw new Failure('bad_request', { detail: 'admin body is not application/json' })
  try {
    return JSON.parse(Buffer.concat(chunks).toString('utf8'))
  } catch {
    throw new Failure('bad_request', { detail: 'admin body is not JSON' })
  }
}
