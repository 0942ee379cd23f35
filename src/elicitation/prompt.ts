import type { ConnectLink, ConnectionNeed, ConnectionProblem } from '../core/index.ts'
import { CONNECTION_ERROR, type Id, URL_ELICITATION_REQUIRED } from '../mcp/index.ts'

/** How a client is asked to connect an account (connections.md §2). */
export type PromptWay = 'input_required' | 'elicitation_error' | 'text'

/** Everything that a prompt tells the client. */
export interface Prompt {
  readonly need: ConnectionNeed
  readonly link: ConnectLink
  /** Name of the provider to show. */
  readonly label: string
  readonly route: string
  readonly nowMs: number
  readonly requestId: string
  /** The person declined or canceled an earlier prompt of this request. */
  readonly isRefused: boolean
}

/** Key of the input request. */
export const INPUT_KEY = 'connect_account'

const REASONS: Readonly<Record<ConnectionProblem, (label: string) => string>> = {
  missing: (label) => `This needs your ${label} account, which is not connected yet.`,
  ended: (label) => `${label} ended this connection; connect your account again.`,
  insufficient_scope: (label) => `This needs more permissions of your ${label} account.`,
}

/** One sentence that says which account to connect, and why. */
export const messageOf = ({ need, label }: Pick<Prompt, 'need' | 'label'>): string => REASONS[need.problem](label)

/** The same with the link and its lifetime, for clients that show text only. */
export function textOf(prompt: Prompt): string {
  const { link, nowMs, isRefused } = prompt
  const minutes = Math.max(1, Math.floor((link.expiresAtMs - nowMs) / 60_000))
  const refused = isRefused ? 'The request to connect it was declined. ' : ''
  return (
    `${messageOf(prompt)} ${refused}Open this link in a browser, valid for ${minutes} minutes and for you only: ` +
    `${link.url} Then try again.`
  )
}

/** A result that names the input still required (MCP 2026-07-28, multi-round-trip requests). */
export const inputRequired = (id: Id, prompt: Prompt, requestState: string): string =>
  respond(id, {
    result: {
      resultType: 'input_required',
      inputRequests: {
        [INPUT_KEY]: {
          method: 'elicitation/create',
          params: { mode: 'url', url: prompt.link.url, message: messageOf(prompt) },
        },
      },
      requestState,
    },
  })

/** The error that asks for URL elicitation (MCP 2025-11-25). */
export const elicitationError = (id: Id, prompt: Prompt): string =>
  respond(id, {
    error: {
      code: URL_ELICITATION_REQUIRED,
      message: messageOf(prompt),
      data: {
        elicitations: [
          { mode: 'url', elicitationId: prompt.link.id, url: prompt.link.url, message: messageOf(prompt) },
        ],
        reason: 'not_connected',
        requestId: prompt.requestId,
      },
    },
  })

/** A tool result that a model reads and shows to its user. `isStateless`: results of MCP 2026-07-28 have a type. */
export const toolError = (id: Id, prompt: Prompt, isStateless: boolean): string =>
  respond(id, {
    result: {
      ...(isStateless ? { resultType: 'complete' } : {}),
      content: [{ type: 'text', text: textOf(prompt) }],
      isError: true,
    },
  })

/** The JSON-RPC error of all other methods. */
export const plainError = (id: Id | null, prompt: Prompt): string =>
  respond(id, {
    error: {
      code: CONNECTION_ERROR,
      message: textOf(prompt),
      data: { reason: 'not_connected', requestId: prompt.requestId, connectUrl: prompt.link.url },
    },
  })

const respond = (id: Id | null, body: object): string => JSON.stringify({ jsonrpc: '2.0', id, ...body })
