/** What a JSON-RPC message is about. */
export interface RpcSubject {
  readonly method: string
  readonly name: string | undefined
}

/** Larger bodies are not parsed for the list; clients of the 2026-07-28 revision say it in headers anyway. */
const MAX_PARSED = 64 * 1024
const MAX_SHOWN = 200

/** What the body of a request asks for, of the first message where it is a batch; undefined for what is no JSON-RPC request. */
export function rpcSubjectOf(body: Buffer): RpcSubject | undefined {
  if (body.length > MAX_PARSED || body.length < 2) return undefined
  let message: unknown
  try {
    message = JSON.parse(body.toString('utf8'))
  } catch {
    return undefined
  }
  if (Array.isArray(message)) message = message[0]
  if (typeof message !== 'object' || message === null) return undefined
  const { method, params } = message as { method?: unknown; params?: { name?: unknown; uri?: unknown } | null }
  if (typeof method !== 'string') return undefined
  const name = params?.name ?? params?.uri
  return { method: method.slice(0, MAX_SHOWN), name: typeof name === 'string' ? name.slice(0, MAX_SHOWN) : undefined }
}
