import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import type { Provider } from 'oidc-provider'
import { Failure } from '../../core/index.ts'
import { storeFailure } from '../store-failure.ts'
import type { ProviderParts } from './provider.ts'

/** A form that was posted to one of the library's endpoints. */
export interface LibraryRequest {
  /** As the library knows it, below the issuer. */
  readonly path: string
  readonly contentType: string | undefined
  readonly authorization: string | undefined
  readonly body: Buffer
}

export interface LibraryAnswer {
  readonly status: number
  readonly body: object | undefined
  /** For 401. */
  readonly challenge: string | undefined
}

/** Calls the library with a request of our making: it sees the headers that it needs and no others. */
export type LibraryCall = (request: LibraryRequest) => Promise<LibraryAnswer>

interface Outcome {
  resolve(answer: LibraryAnswer): void
  reject(error: unknown): void
}

/**
 * Makes the calls. The library is loaded when the first server is opened, so that a process without one does without it. What
 * the library takes for its own error is thrown as the `Failure` that it is: `store_unavailable`, `identity_provider_unavailable`,
 * or `internal_error`.
 */
export function createLibraryCall(parts: ProviderParts): LibraryCall {
  const load = async (): Promise<LibraryCall> => {
    const { createProvider } = await import('./provider.ts')
    return callOf(createProvider(parts), parts.issuer)
  }
  const loading = load()
  // Told to whoever asks for a token.
  loading.catch(() => undefined)
  return async (request) => (await loading)(request)
}

function callOf(provider: Provider, issuer: string): LibraryCall {
  const { host, protocol } = new URL(issuer)
  const outcomes = new WeakMap<object, Outcome>()
  const errors = new WeakMap<object, unknown>()
  provider.on('server_error', (ctx, error) => void errors.set(ctx.req, error))
  provider.use(async (ctx, next) => {
    // The answer is read here; nothing is written to the response that was made for this call.
    ctx.respond = false
    const outcome = outcomes.get(ctx.req)
    try {
      await next()
    } catch (error) {
      outcome?.reject(failureOf(error))
      return
    }
    const error = errors.get(ctx.req)
    if (error === undefined) outcome?.resolve(answerOf(ctx))
    else outcome?.reject(failureOf(error))
  })
  const run = provider.callback()

  return ({ path, contentType, authorization, body }) =>
    new Promise((resolve, reject) => {
      const request = new IncomingMessage(new Socket())
      request.method = 'POST'
      request.url = path
      request.headers = {
        host,
        'x-forwarded-proto': protocol.slice(0, -1),
        accept: 'application/json',
        'content-length': String(body.length),
        ...(contentType === undefined ? {} : { 'content-type': contentType }),
        ...(authorization === undefined ? {} : { authorization }),
      }
      request.push(body)
      request.push(null)
      outcomes.set(request, { resolve, reject })
      run(request, new ServerResponse(request)).catch(reject)
    })
}

/** What is read of the library's context. */
interface Answered {
  readonly status: number
  readonly body: unknown
  readonly response: { get(name: string): string }
}

function answerOf({ body, status, response }: Answered): LibraryAnswer {
  const challenge = response.get('www-authenticate')
  return {
    status,
    body: typeof body === 'object' && body !== null ? body : undefined,
    challenge: challenge === '' ? undefined : challenge,
  }
}

function failureOf(error: unknown): Failure {
  const known = storeFailure(error)
  return known instanceof Failure ? known : new Failure('internal_error', { cause: error })
}
