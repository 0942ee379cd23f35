import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { ZodTypeProvider } from 'fastify-type-provider-zod'
import { Failure } from '../core/index.ts'
import { JSON_TYPE, matchesEtag } from './answer.ts'
import {
  failureResponses,
  listAnswer,
  listParams,
  listQuery,
  metadataAnswer,
  versionAnswer,
  versionParams,
  versionsAnswer,
  versionsParams,
  versionsQuery,
} from './api-schema.ts'
import { renderPage, renderVersion, renderVersions } from './listing/page.ts'
import type { RegistryData } from './registry-data.ts'
import { SERVER_NAME } from './server-json.ts'
import type { Snapshot } from './listing/snapshot.ts'

export interface RouteOptions {
  readonly registries: ReadonlyMap<string, Pick<RegistryData, 'state'>>
  /** Path → JSON text of the discovery documents, asked for at each request. */
  readonly documents: () => ReadonlyMap<string, string>
  readonly isProtected: boolean
}

const sendJson = (reply: FastifyReply, text: string) => reply.header('content-type', JSON_TYPE).send(text)

/**
 * Every answer depends on data that may change at any time; a copy must be checked before it is used again, and is still
 * good while the entity tag is the same (RFC 9110 §13.1.2).
 */
const sendData = (request: FastifyRequest, reply: FastifyReply, snapshot: Snapshot, text: string | undefined) => {
  if (text === undefined) throw new Failure('not_found')
  const etag = `"${snapshot.revision}"`
  void reply.header('cache-control', 'no-cache').header('etag', etag)
  return matchesEtag(request.headers['if-none-match'], etag) ? reply.code(304).send() : sendJson(reply, text)
}

/** The registry API (published MCP registry API v0.1) and the documents that are always open. */
export function addRoutes(api: FastifyInstance, options: RouteOptions): void {
  const typed = api.withTypeProvider<ZodTypeProvider>()
  const failures = failureResponses(options.isProtected)
  const security = options.isProtected ? { security: [{ bearer: [] }] } : {}

  const snapshotOf = (name: string): Snapshot => {
    const registry = options.registries.get(name)
    if (registry === undefined) throw new Failure('not_found')
    const { snapshot } = registry.state()
    if (snapshot === undefined) throw new Failure('registry_unavailable')
    return snapshot
  }

  // The API under its present name and the one before, which clients still ask for; it is the same.
  for (const version of ['v0.1', 'v0'] as const) {
    const base = `/registry/:name/${version}/servers` as const
    const common = { ...security, ...(version === 'v0.1' ? {} : { hide: true }) }
    typed.get(
      base,
      {
        schema: {
          summary: 'Lists MCP servers.',
          tags: ['servers'],
          params: listParams,
          querystring: listQuery,
          response: { 200: listAnswer, ...failures },
          ...common,
        },
      },
      (request, reply) => {
        const snapshot = snapshotOf(request.params.name)
        return sendData(request, reply, snapshot, renderPage(snapshot, request.query))
      },
    )

    typed.get(
      `${base}/:serverName/versions`,
      {
        schema: {
          summary: 'Lists all versions of an MCP server.',
          tags: ['servers'],
          params: versionsParams,
          querystring: versionsQuery,
          response: { 200: versionsAnswer, ...failures },
          ...common,
        },
      },
      (request, reply) => {
        const { name, serverName } = request.params
        const snapshot = snapshotOf(name)
        if (!SERVER_NAME.test(serverName)) throw new Failure('not_found')
        return sendData(request, reply, snapshot, renderVersions(snapshot, serverName, request.query.include_deleted))
      },
    )

    typed.get(
      `${base}/:serverName/versions/:version`,
      {
        schema: {
          summary: 'Gives one version of an MCP server, or its latest.',
          tags: ['servers'],
          params: versionParams,
          querystring: versionsQuery,
          response: { 200: versionAnswer, ...failures },
          ...common,
        },
      },
      (request, reply) => {
        const { name, serverName, version } = request.params
        const snapshot = snapshotOf(name)
        if (!SERVER_NAME.test(serverName)) throw new Failure('not_found')
        return sendData(
          request,
          reply,
          snapshot,
          renderVersion(snapshot, serverName, version, request.query.include_deleted),
        )
      },
    )
  }

  const sendDocument = (request: FastifyRequest, reply: FastifyReply) => {
    const target = request.raw.url ?? ''
    const mark = target.indexOf('?')
    const document = options.documents().get(mark === -1 ? target : target.slice(0, mark))
    if (document === undefined) throw new Failure('not_found')
    return sendJson(reply, document)
  }
  const schema = {
    summary: 'OAuth discovery: who gives tokens for this registry.',
    tags: ['discovery'],
    response: { 200: metadataAnswer },
  }
  api.get('/.well-known/oauth-protected-resource', { schema }, sendDocument)
  // The same document with the path of the resource behind it (RFC 9728 §3.1); everything else there is 404.
  api.get('/.well-known/*', { schema: { hide: true } }, sendDocument)
}
