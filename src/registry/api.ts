import { randomUUID } from 'node:crypto'
import swagger from '@fastify/swagger'
import Fastify, { type FastifyError, type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import {
  createJsonSchemaTransform,
  createJsonSchemaTransformObject,
  serializerCompiler,
  validatorCompiler,
} from 'fastify-type-provider-zod'
import { unverifiedIn } from '../authenticate/index.ts'
import {
  asFailure,
  Failure,
  refusedFrom,
  type Caller,
  type Log,
  type Metrics,
  type RefusedFrom,
} from '../core/index.ts'
import { authorizationOf, authorize, challengeOf, pathOf, type AccessPolicy } from './access.ts'
import { COMMON_HEADERS, failureBody, failureHeaders, JSON_TYPE } from './answer.ts'
import { NOT_FOUND, PARAMETER_HINTS } from './api-schema.ts'
import { createRequestLog } from './request-log.ts'
import { addRoutes, type RouteOptions } from './routes.ts'
import { apiSchemaIds, apiSchemas } from './server-json.ts'

export interface ApiOptions extends Omit<RouteOptions, 'isProtected'> {
  readonly access: AccessPolicy
  /** Version of this program, for the OpenAPI document. */
  readonly version: string
  readonly log: Log
  readonly metrics: Metrics
  /** Default: a random UUID. */
  readonly requestId?: () => string
  /** Log lines of refused requests name the client's address. Default true. */
  readonly logsClients?: boolean | undefined
}

declare module 'fastify' {
  interface FastifyRequest {
    /** Who is asking; undefined until that is known. */
    caller: Caller | undefined
    /** Why the answer is none of the good ones. */
    failure: Failure | undefined
  }
}

/** The bound of what arrives is that of the headers; no parameter here is matched by a regular expression. */
const MAX_PARAM_LENGTH = 32 * 1024

/** What Fastify refuses by itself, in words of the error table. */
function failureOf(error: FastifyError): Failure {
  if (error instanceof Failure) return error
  if (error.validation !== undefined) return new Failure('bad_request', { detail: 'a parameter is not valid' })
  const status = error.statusCode ?? 500
  if (status === 404) return new Failure('not_found')
  if (status >= 400 && status < 500) return new Failure('bad_request', { cause: error })
  return asFailure(error)
}

const isOfApi = ({ is404, routeOptions }: FastifyRequest): boolean =>
  !is404 && routeOptions.url?.startsWith('/registry/') === true

function hintOf(error: FastifyError, failure: Failure, request: FastifyRequest): string | undefined {
  if (failure.code === 'not_found') return isOfApi(request) ? NOT_FOUND : undefined
  const name = error.validation?.[0]?.instancePath.split('/')[1]
  return name !== undefined && Object.hasOwn(PARAMETER_HINTS, name) ? PARAMETER_HINTS[name] : undefined
}

async function addOpenApi(app: FastifyInstance, version: string, isProtected: boolean): Promise<void> {
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'MCP registry',
        description: 'Lists MCP servers, as the published MCP registry API v0.1 does.',
        version,
      },
      ...(isProtected ? { components: { securitySchemes: { bearer: { type: 'http', scheme: 'bearer' } } } } : {}),
    },
    transform: createJsonSchemaTransform({
      schemaRegistry: apiSchemas,
      zodToJsonConfig: {
        // zod leaves out the default of a value that is read from text first; it is the same one.
        override: ({ zodSchema, jsonSchema }) => {
          const { def } = zodSchema._zod
          if (def.type === 'default') jsonSchema.default = (def as { defaultValue?: unknown }).defaultValue
        },
      },
    }),
    transformObject: (document) =>
      withoutInputs(createJsonSchemaTransformObject({ schemaRegistry: apiSchemas })(document)),
  })
}

/** Without what each schema is to somebody who sends it: nobody sends one here, and generated clients would have all twice. */
function withoutInputs<T extends object>(document: T): T {
  const { components } = document as { components?: { schemas?: Record<string, unknown> } }
  for (const id of Object.keys(components?.schemas ?? {}))
    if (!apiSchemaIds.has(id)) Reflect.deleteProperty(components?.schemas ?? {}, id)
  return document
}

function whoWasRefused(
  { raw, caller }: FastifyRequest,
  { status }: Failure,
  { access, logsClients = true }: Pick<ApiOptions, 'access' | 'logsClients'>,
): RefusedFrom | undefined {
  const client = access.mode === 'oauth' ? access.peerOf(raw) : raw.socket.remoteAddress
  return refusedFrom(status, {
    client: logsClients ? client : undefined,
    userAgent: raw.headers['user-agent'],
    path: pathOf(raw.url ?? ''),
    unverified: caller === undefined ? unverifiedIn(authorizationOf(raw)) : undefined,
  })
}

/**
 * The registry API as a Fastify instance that is ready to be given requests through `routing`. They must have passed
 * `admit`: this checks who is asking, and what is asked for, but not how the path is spelled.
 */
export async function createApi(options: ApiOptions): Promise<FastifyInstance> {
  const { access } = options
  const isProtected = access.mode === 'oauth'
  const record = createRequestLog(options.log, options.metrics)

  const fail = (error: FastifyError, request: FastifyRequest, reply: FastifyReply) => {
    const failure = failureOf(error)
    request.failure = failure
    return reply
      .code(failure.status)
      .headers({ ...COMMON_HEADERS, ...failureHeaders(failure, challengeOf(access, failure)) })
      .send(failureBody(failure, hintOf(error, failure, request)))
  }

  const app = Fastify({
    logger: false,
    genReqId: options.requestId ?? (() => randomUUID()),
    frameworkErrors: (error, request, reply) => void fail(error, request, reply),
    routerOptions: { maxParamLength: MAX_PARAM_LENGTH },
    exposeHeadRoutes: true,
  })
  app.setValidatorCompiler(validatorCompiler)
  app.setSerializerCompiler(serializerCompiler)
  app.decorateRequest('caller', undefined)
  app.decorateRequest('failure', undefined)
  app.setErrorHandler(fail)
  app.setNotFoundHandler(() => {
    throw new Failure('not_found')
  })

  app.addHook('onRequest', (request, reply, done) => {
    reply.headers(COMMON_HEADERS).header('x-request-id', request.id)
    const pass = (caller: Caller): void => {
      request.caller = caller
      done()
    }
    const refuse = (error: unknown): void => done(asFailure(error))
    try {
      const route = request.is404 ? undefined : request.routeOptions.url
      const caller = authorize(access, { raw: request.raw, route, params: request.params })
      if (caller instanceof Promise) caller.then(pass, refuse)
      else pass(caller)
    } catch (error) {
      refuse(error)
    }
  })
  // An empty parameter is none: forms and templates of clients send those that nobody filled in.
  app.addHook('preValidation', (request, _reply, done) => {
    const query = request.query as Record<string, unknown>
    for (const [name, value] of Object.entries(query)) if (value === '') Reflect.deleteProperty(query, name)
    done()
  })
  app.addHook('onResponse', (request, reply, done) => {
    const { id, method, caller, failure } = request
    const route = request.is404 ? undefined : request.routeOptions.url
    const from = failure === undefined ? undefined : whoWasRefused(request, failure, options)
    record({ id, method, route, status: reply.statusCode, elapsedMs: reply.elapsedTime, caller, failure, from })
    done()
  })

  await addOpenApi(app, options.version, isProtected)
  let openApi = ''
  app.get('/openapi.json', { schema: { hide: true } }, (_request, reply) =>
    reply.header('content-type', JSON_TYPE).send(openApi),
  )
  addRoutes(app, { ...options, isProtected })
  await app.ready()
  openApi = JSON.stringify(app.swagger())
  return app
}
