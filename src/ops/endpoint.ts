import type { EndpointResponse } from '../core/index.ts'

/** A request to a guarded endpoint, with its body within the limit. */
export interface OpsRequest {
  readonly method: string
  readonly query: URLSearchParams
  /** The JSON body of a POST or PUT; undefined without a body. */
  readonly body?: unknown
}

/** A response: `json` is sent as `application/json`; undefined sends no body (status 204). */
export interface OpsReply {
  readonly status: number
  readonly json?: unknown
}

export type OpsHandler = (request: OpsRequest) => OpsReply | Promise<OpsReply>

/** Readiness of the process at `/readiness`: 200 if `ok`, else 503 (decisions §7, Registry file). */
export interface Readiness {
  readonly ok: boolean
  /** Serving with a problem, such as old data or a route without its secret. */
  readonly degraded?: boolean
  /** For the operator. Never contains secrets or text of external errors. */
  readonly detail?: unknown
}

/** A response with a JSON body. */
export function jsonText(
  status: number,
  body: string,
  headers: Readonly<Record<string, string>> = {},
): EndpointResponse {
  return { status, headers: { 'content-type': 'application/json; charset=utf-8', ...headers }, body }
}

/** A response as JSON; undefined sends no body. */
export function jsonReply(status: number, json: unknown): EndpointResponse {
  return json === undefined ? { status, headers: {}, body: '' } : jsonText(status, JSON.stringify(json))
}
