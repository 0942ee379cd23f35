import { parseMessages } from './message.ts'

/** What a JSON-RPC message is about. */
export interface RpcSubject {
  readonly method: string
  readonly name: string | undefined
}

/** Larger bodies are not parsed for the list; clients of the 2026-07-28 revision say it in headers anyway. */
const MAX_PARSED = 64 * 1024
const MAX_SHOWN = 200
/** Nearly every client writes these first; then the rest need not be parsed for a line in a list. */
const BEGINNING = 512
const USUAL =
  /^\{(?:"jsonrpc":"2\.0",|"id":(?:\d+|"[\w-]*"),){0,2}"method":"([\w/.-]{1,100})"(?:,"params":\{"(?:name|uri)":"([\w/.:-]{1,200})"|)/
/** A message is an object, several are an array. */
const NO_MESSAGE = /^[\s\xEF\xBB\xBF]*[^\s\xEF\xBB\xBF[{]/
/** These are about something that has a name. */
const NAMED: ReadonlySet<string> = new Set(['tools/call', 'prompts/get', 'resources/read', 'resources/subscribe'])

/** What the body of a request asks for, of the first message where it is a batch; undefined for what is no JSON-RPC request. */
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
