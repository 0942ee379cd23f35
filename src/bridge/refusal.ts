import type { Readable } from 'node:stream'
import { type EndpointAnswer, maskBody, printable } from '../core/index.ts'
import { isObject, type Message, parseMessages } from '../mcp/index.ts'
import { discardRest, isJson } from './answers.ts'

/** Content of an unsuccessful response. */
export interface Refusal {
  readonly status: number
  /** Its JSON-RPC messages. */
  readonly messages: readonly Message[]
  /** Its text, masked, at most 300 characters; may be empty. */
  readonly text: string
  readonly isJson: boolean
}

/** Statuses of a server or gateway that may change on retry. */
const TRANSIENT: ReadonlySet<number> = new Set([408, 409, 425, 429, 502, 503, 504])

/** Limits for a body: bytes and milliseconds. */
const JSON_BOUNDS = { maxBytes: 1024 * 1024, limitMs: 30_000 }
const TEXT_BOUNDS = { maxBytes: 16 * 1024, limitMs: 2_000 }
/** Characters of a server's text for the client. */
const MAX_TEXT = 300

/** Reads an unsuccessful response. `masked` removes the bridge's secrets. Never rejects. */
export async function readRefusal(answer: EndpointAnswer, masked: (text: string) => string): Promise<Refusal> {
  const json = isJson(answer)
  const body = await beginningOf(answer.body, json ? JSON_BOUNDS : TEXT_BOUNDS)
  const found = json ? parseMessages(body) : []
  const messages = found.filter((message) => message.kind !== 'malformed')
  return {
    status: answer.status,
    messages: messages.length === found.length ? messages : [],
    text: textOf(body.subarray(0, TEXT_BOUNDS.maxBytes).toString('utf8'), json, masked),
    isJson: json,
  }
}

/** Whether a retry may succeed. */
export const isTransient = (status: number): boolean => TRANSIENT.has(status)

/**
 * Whether the server has lost the session of a request: 404 (MCP, session management), or 400 with a message about the
 * session or initialization, or with plain text.
 */
export function isSessionLost({ status, messages, text, isJson: json }: Refusal): boolean {
  if (status === 404) return true
  if (status !== 400) return false
  const [message] = messages
  if (message === undefined) return !json || ABOUT_SESSION.test(text)
  return message.kind === 'response' && ABOUT_SESSION.test(String(Object(message.error)['message'] ?? ''))
}

const ABOUT_SESSION = /\bsession\b|\bnot initialized\b/i

async function beginningOf(body: Readable, { maxBytes, limitMs }: typeof TEXT_BOUNDS): Promise<Buffer> {
  const chunks: Buffer[] = []
  let length = 0
  const timer = setTimeout(() => body.destroy(), limitMs)
  try {
    for await (const chunk of body.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
      chunks.push(chunk)
      length += chunk.length
      if (length >= maxBytes) break
    }
  } catch {
    // A partial body is enough.
  } finally {
    clearTimeout(timer)
    discardRest(body)
  }
  return Buffer.concat(chunks)
}

function textOf(text: string, json: boolean, masked: (text: string) => string): string {
  const shown = maskBody(masked(json ? (sentenceIn(text) ?? text) : text.replace(/<[^<>]{0,512}>/g, ' ')))
  const line = printable(shown.replaceAll(/[\t\n\r ]{1,64}/g, ' ')).trim()
  return line.length <= MAX_TEXT ? line : `${line.slice(0, MAX_TEXT)}…`
}

/** JSON fields that services use for error messages. */
const MEMBERS = ['message', 'Message', 'error_description', 'detail', 'error']

/** The message in a JSON error object. */
function sentenceIn(text: string): string | undefined {
  try {
    const value: unknown = JSON.parse(text)
    if (!isObject(value)) return undefined
    const problem = MEMBERS.map((name) => value[name]).find((each) => each !== undefined)
    return typeof problem === 'string'
      ? problem
      : isObject(problem) && typeof problem['message'] === 'string'
        ? problem['message']
        : undefined
  } catch {
    return undefined
  }
}
