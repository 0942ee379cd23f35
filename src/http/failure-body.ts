import { FAILURES, type Failure } from '../core/index.ts'

/** Default JSON-RPC code of failures of the proxy itself (decisions §5). */
const JSON_RPC_CODE = -32_000

/**
 * Body of a failure on an MCP route: a JSON-RPC error with the request's JSON-RPC id if known, the stable reason and
 * the request id (decisions §5). Contains only the table's sentence, and the exceeded limit. Content type
 * `application/json`.
 */
export function mcpFailureBody(failure: Failure, requestId: string, id?: string | number): string {
  return JSON.stringify({
    jsonrpc: '2.0',
    id,
    error: {
      code: failure.rpcCode ?? JSON_RPC_CODE,
      message: failure.sentence,
      data: { reason: failure.code, requestId },
    },
  })
}

/** Body of a failure of the registry API (decisions §5). */
export function registryFailureBody(failure: Failure): string {
  const row = FAILURES[failure.code]
  return JSON.stringify({ error: row.oauthError, error_description: failure.sentence })
}

/**
 * Body of a failure at an OAuth endpoint (RFC 6749 §5.2); `not_found` is not an OAuth error and becomes
 * `invalid_request`.
 */
export function oauthFailureBody(failure: Failure): string {
  const row = FAILURES[failure.code]
  const error = row.oauthError === 'not_found' ? 'invalid_request' : row.oauthError
  return JSON.stringify({ error, error_description: failure.sentence })
}
