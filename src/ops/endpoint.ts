import type { EndpointResponse } from '../core/index.ts'

/** What a guarded endpoint is given: the request, read within the size bound. */
export interface OpsRequest {
  readonly method: string
  readonly query: URLSearchParams
  /** The JSON body of a POST or PUT; undefined when there is none. */
  readonly body?: unknown
}

/** What it answers: `json` is sent as `application/json`; undefined sends no body (204 belongs with it). */
export interface OpsReply {
  readonly status: number
  readonly json?: unknown
}

export type OpsHandler = (request: OpsRequest) => OpsReply | Promise<OpsReply>

/** What the process says of itself at `/readiness`: 200 when `ok`, 503 when not (decisions §7, Registry file). */
export interface Readiness {
  readonly ok: boolean
  /** Serving, but with something that should be looked at (old data, one route without its secret). */
  readonly degraded?: boolean
  /** What a person needs to know; never values of secrets or texts of foreign errors. */
  readonly detail?: unknown
}

/** An answer whose body is JSON already. */
export function jsonText(
  status: number,
  body: string,
  headers: Readonly<Record<string, string>> = {},
): EndpointResponse {
  return { status, headers: { 'content-type': 'application/json; charset=utf-8', ...headers }, body }
}

/** An answer as JSON; undefined gives one without a body. */
export function jsonReply(status: number, json: unknown): EndpointResponse {
  return json === undefined ? { status, headers: {}, body: '' } : jsonText(status, JSON.stringify(json))
}
