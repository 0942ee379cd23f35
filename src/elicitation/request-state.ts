import { createHash } from 'node:crypto'
import { type Caller, type Clock, type ConnectLinks, Failure } from '../core/index.ts'
import { CONNECT_STATE, isObject, type Params } from '../mcp/index.ts'

const PURPOSE = 'request state'
const VALID_MS = 10 * 60_000

/** The fields of a retry (MCP 2026-07-28, multi-round-trip requests) that the backend never sees. */
export const RETRY_FIELDS: ReadonlySet<string> = new Set(['inputResponses', 'requestState'])
const NOT_COMPARED: ReadonlySet<string> = new Set([...RETRY_FIELDS, '_meta'])

/** The request that a prompt belongs to. */
export interface PromptedRequest {
  readonly caller: Caller
  readonly route: string
  readonly method: string
  readonly params: Params
}

/** What a client returned after a prompt. */
export interface Retry {
  /** Prompts so far for this request. */
  readonly prompts: number
  /** End of the first prompt's validity, milliseconds since the epoch: it is not extended. */
  readonly endsAtMs: number
  /** The person declined or canceled. */
  readonly isRefused: boolean
}

interface Written {
  readonly owner: string
  readonly route: string
  readonly digest: string
  readonly prompts: number
  readonly endsAtMs: number
}

/** The `requestState` of a prompt: sealed, and bound to caller, route, method and parameters (connections.md §2). */
export interface RequestStates {
  /** True for a text in which `read` may find a state of this proxy. */
  mayHold(body: Buffer): boolean
  write(request: PromptedRequest, before: Retry | undefined): string
  /**
   * The retry that a request is; undefined for a state of the backend, none, or an expired one. Throws `bad_request` for a
   * state of a different request or caller.
   */
  read(request: PromptedRequest): Promise<{ readonly isOurs: boolean; readonly retry: Retry | undefined }>
}

const MARK = Buffer.from(`"${CONNECT_STATE}`)

export function createRequestStates(links: Pick<ConnectLinks, 'seal' | 'open'>, clock: Clock): RequestStates {
  return {
    mayHold: (body) => body.includes(MARK),
    write(request, before) {
      const { route } = request
      const state: Written = {
        owner: ownerOf(request.caller),
        route,
        digest: digestOf(request),
        prompts: (before?.prompts ?? 0) + 1,
        endsAtMs: before?.endsAtMs ?? clock.now() + VALID_MS,
      }
      return CONNECT_STATE + links.seal(PURPOSE, JSON.stringify(state))
    },
    async read(request) {
      const { requestState: text, inputResponses } = request.params
      if (typeof text !== 'string' || !text.startsWith(CONNECT_STATE)) return { isOurs: false, retry: undefined }
      const plain = await links.open(PURPOSE, text.slice(CONNECT_STATE.length))
      const state = plain === undefined ? undefined : (JSON.parse(plain) as Written)
      if (
        state === undefined ||
        state.owner !== ownerOf(request.caller) ||
        state.route !== request.route ||
        state.digest !== digestOf(request)
      )
        throw new Failure('bad_request', { detail: '`requestState` belongs to a different request' })
      const { prompts, endsAtMs } = state
      const retry = { prompts, endsAtMs, isRefused: isRefused(inputResponses) }
      return { isOurs: true, retry: clock.now() < endsAtMs ? retry : undefined }
    },
  }
}

const ownerOf = (caller: Caller): string =>
  caller.kind === 'anonymous' ? '' : JSON.stringify([caller.issuer, caller.identity])

function digestOf({ method, params }: PromptedRequest): string {
  const compared = Object.entries(params).filter(([name]) => !NOT_COMPARED.has(name))
  return createHash('sha256')
    .update(JSON.stringify([method, compared]))
    .digest('base64url')
}

/** Whether a response to the prompt is `decline` or `cancel`. */
function isRefused(responses: unknown): boolean {
  if (!isObject(responses)) return false
  return Object.values(responses).some(
    (response) => isObject(response) && (response['action'] === 'decline' || response['action'] === 'cancel'),
  )
}
