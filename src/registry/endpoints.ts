import type { z } from 'zod'
import { Failure } from '../core/index.ts'
import {
  listAnswer,
  listParams,
  listQuery,
  versionAnswer,
  versionParams,
  versionsAnswer,
  versionsParams,
  versionsQuery,
  type DescribedAnswer,
} from './api-schema.ts'
import { renderPage, renderVersion, renderVersions } from './listing/page.ts'
import type { Snapshot } from './listing/snapshot.ts'
import { SERVER_NAME } from './server-json.ts'

/** One endpoint of the registry API below `/registry/:name/v0.1/servers`. */
export interface Endpoint {
  readonly path: string
  readonly summary: string
  readonly params: z.ZodObject
  readonly query: z.ZodObject
  readonly answer: DescribedAnswer
  /**
   * Renders the JSON response; undefined for an unknown server or version. Throws `Failure` for an invalid server
   * name.
   */
  render(snapshot: Snapshot, params: Readonly<Record<string, string>>, query: unknown): string | undefined
}

const serverNameIn = ({ serverName = '' }: Readonly<Record<string, string>>): string => {
  if (!SERVER_NAME.test(serverName)) throw new Failure('not_found')
  return serverName
}

/** The published MCP registry API v0.1, for the router and the OpenAPI document. */
export const ENDPOINTS: readonly Endpoint[] = [
  {
    path: '',
    summary: 'Lists MCP servers.',
    params: listParams,
    query: listQuery,
    answer: listAnswer,
    render: (snapshot, _params, query) => renderPage(snapshot, query as z.output<typeof listQuery>),
  },
  {
    path: '/:serverName/versions',
    summary: 'Lists all versions of an MCP server.',
    params: versionsParams,
    query: versionsQuery,
    answer: versionsAnswer,
    render: (snapshot, params, query) =>
      renderVersions(snapshot, serverNameIn(params), (query as z.output<typeof versionsQuery>).include_deleted),
  },
  {
    path: '/:serverName/versions/:version',
    summary: 'Returns one version of an MCP server, or its latest.',
    params: versionParams,
    query: versionsQuery,
    answer: versionAnswer,
    render: (snapshot, params, query) =>
      renderVersion(
        snapshot,
        serverNameIn(params),
        params['version'] ?? '',
        (query as z.output<typeof versionsQuery>).include_deleted,
      ),
  },
]
