import { parseMessages } from './message.ts'

/** Subject of a JSON-RPC message. */
export interface RpcSubject {
  readonly method: string
  readonly name: string | undefined
}

/** Larger bodies are not parsed for the list; clients of revision 2026-07-28 have headers. */
const MAX_PARSED = 64 * 1024
const MAX_SHOWN = 200
/** Most clients send these fields first, so that the rest need not be parsed. */
const BEGINNING = 512
const USUAL =
  /^\{(?:"jsonrpc":"2\.0",|"id":(?:\d+|"[\w-]*"),){0,2}"method":"([\w/.-]{1,100})"(?:,"params":\{"(?:name|uri)":"([\w/.:-]{1,200})"|)/
/** A message is an object, a batch is an array. */
const NO_MESSAGE = /^[\s\xEF\xBB\xBF]*[^\s\xEF\xBB\xBF[{]/
/** Methods whose subject has a name. */
const NAMED: ReadonlySet<string> = new Set(['tools/call', 'prompts/get', 'resources/read', 'resources/subscribe'])

/**
 * Returns the subject of a request body (of the first message of a batch); undefined if it is not a JSON-RPC request.
 */
export function rpcSubjectOf(body: Buffer): RpcSubject | undefined {
  if (body.length < 2) return undefined
  const beginning = body.toString('latin1', 0, BEGINNING)
  if (NO_MESSAGE.test(beginning)) return undefined
  const [, usual, named] = USUAL.exec(beginning) ?? []
  if (usual !== undefined && (named !== undefined || !NAMED.has(usual))) return { method: usual, name: named }
  if (body.length > MAX_PARSED) return usual === undefined ? undefined : { method: usual, name: undefined }
  const [message] = parseMessages(body)
  if (message?.kind !== 'request' && message?.kind !== 'notification') return undefined
  const { method, params } = message
  const name = params['name'] ?? params['uri']
  return { method: method.slice(0, MAX_SHOWN), name: typeof name === 'string' ? name.slice(0, MAX_SHOWN) : undefined }
}
