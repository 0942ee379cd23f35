import type { Readable } from 'node:stream'
import { type EndpointAnswer, maskBody, printable } from '../core/index.ts'
import { isObject, type Message, parseMessages } from '../mcp/index.ts'
import { endSoon, isJson } from './answers.ts'

/** What a response that is no success says. */
export interface Refusal {
  readonly status: number
  /** JSON-RPC messages in it. */
  readonly messages: readonly Message[]
  /** Its text for people, masked, at most 300 characters; empty where it has none. */
  readonly text: string
  readonly isJson: boolean
}

/** Statuses of a server, or of a gateway before it, that may be different the next time. */
const TRANSIENT: ReadonlySet<number> = new Set([408, 409, 425, 429, 502, 503, 504])

/** How much of a body is read, and for how long it is waited for (milliseconds). */
const JSON_BOUNDS = { maxBytes: 1024 * 1024, limitMs: 30_000 }
const TEXT_BOUNDS = { maxBytes: 16 * 1024, limitMs: 2_000 }
/** Characters of a server's text that the client is shown. */
const SHOWN = 300

/** Reads a refusal. `masked` removes what is secret in this bridge. Never rejects. */
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

/** Whether the same request may succeed a little later. */
export const isTransient = (status: number): boolean => TRANSIENT.has(status)

/**
 * Whether a server has lost the session of a request that named one: 404 (MCP, session management); some answer 400, with
 * a message about the session or its initialization, or with plain text.
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
    // What has come is all that there is.
  } finally {
    clearTimeout(timer)
    endSoon(body)
  }
  return Buffer.concat(chunks)
}

function textOf(text: string, json: boolean, masked: (text: string) => string): string {
  const shown = maskBody(masked(json ? (sentenceIn(text) ?? text) : text.replace(/<[^<>]{0,512}>/g, ' ')))
  const line = printable(shown.replaceAll(/[\t\n\r ]{1,64}/g, ' ')).trim()
  return line.length <= SHOWN ? line : `${line.slice(0, SHOWN)}…`
}

/** Members in which services say what is wrong. */
const MEMBERS = ['message', 'Message', 'error_description', 'detail', 'error']

/** The sentence in an error object of JSON. */
function sentenceIn(text: string): string | undefined {
  try {
    const value: unknown = JSON.parse(text)
    if (!isObject(value)) return undefined
    const said = MEMBERS.map((name) => value[name]).find((each) => each !== undefined)
    return typeof said === 'string'
      ? said
      : isObject(said) && typeof said['message'] === 'string'
        ? said['message']
        : undefined
  } catch {
    return undefined
  }
}
