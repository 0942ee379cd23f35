import { mkdtemp, rm } from 'node:fs/promises'
import { createServer, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import os from 'node:os'
import path from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, expect } from 'vitest'
import { loginOutbound } from '../../../src/compose/login/index.ts'
import {
  loginCredentials,
  type LoginCredentialsOptions,
  type LoginStore,
  openLoginStore,
} from '../../../src/login/index.ts'
import { Secret } from '../../../src/core/index.ts'
import { recordLog } from '../e2e/lab.ts'

export type Json = Readonly<Record<string, unknown>>

/** A response at one path: a document, or a function of the request. */
type Answer = Json | ((body: URLSearchParams | Json) => readonly [status: number, body: Json])

/** An MCP server and its authorization server, made of documents; both good unless a test says otherwise. */
export interface PaperServer {
  readonly origin: string
  readonly store: LoginStore
  readonly directory: string
  /** Responses by path. */
  documents: Record<string, Answer>
  /** Raw response by path; takes precedence if defined. */
  raw: Record<string, (body: URLSearchParams) => ((response: ServerResponse) => void) | undefined>
  /** The access token that is stored. */
  stored(): Promise<Secret | undefined>
  readonly asked: { path: string; body: URLSearchParams | Json; authorization: string | undefined }[]
  /** URLs shown to the user. */
  readonly shown: URLSearchParams[]
  /** Metadata of the authorization server. */
  metadata(more?: Json): Json
  options(more?: Partial<LoginCredentialsOptions>): LoginCredentialsOptions
  /** Logs in, with a person who agrees at once; gives what the browser was shown. */
  login(more?: Partial<LoginCredentialsOptions>, challenge?: string): Promise<URLSearchParams>
}

export const AS_METADATA = '/.well-known/oauth-authorization-server/as'
export const RESOURCE_METADATA = '/.well-known/oauth-protected-resource/mcp'

/** A server for the tests of a file, reset before each of them. */
export function usePaperServer(): PaperServer {
  let server: Server
  let directory = ''
  const origin = (): string => `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const paper = {
    get origin() {
      return origin()
    },
    get store() {
      return openLoginStore(directory)
    },
    get directory() {
      return directory
    },
    documents: {} as Record<string, Answer>,
    raw: {} as PaperServer['raw'],
    async stored() {
      const [record] = await openLoginStore(directory).all()
      return record === undefined ? undefined : new Secret(record.access_token)
    },
    asked: [] as PaperServer['asked'],
    shown: [] as URLSearchParams[],
    metadata: (more: Json = {}): Json => ({
      issuer: `${origin()}/as`,
      authorization_endpoint: `${origin()}/authorize`,
      token_endpoint: `${origin()}/token`,
      registration_endpoint: `${origin()}/register`,
      response_types_supported: ['code'],
      code_challenge_methods_supported: ['S256'],
      ...more,
    }),
    options: (more: Partial<LoginCredentialsOptions> = {}): LoginCredentialsOptions => {
      const endpoint = new URL(`${origin()}/mcp`)
      return {
        endpoint,
        outbound: loginOutbound(endpoint, undefined, {}),
        store: openLoginStore(directory),
        openBrowser: (url) => {
          const { searchParams } = new URL(url)
          paper.shown.push(searchParams)
          void fetch(`${searchParams.get('redirect_uri') ?? ''}?code=c&state=${searchParams.get('state') ?? ''}`)
        },
        now: () => Date.now(),
        patienceMs: 10_000,
        log: recordLog(),
        ...more,
      }
    },
    async login(more: Partial<LoginCredentialsOptions> = {}, challenge = 'Bearer'): Promise<URLSearchParams> {
      const before = paper.shown.length
      const credentials = loginCredentials(paper.options(more))
      await credentials.refused(undefined, challenge, true)
      expect((await credentials.current())?.reveal()).toBe('access')
      return paper.shown[before] ?? new URLSearchParams()
    },
  }
  beforeAll(async () => {
    server = createServer((request, response) => {
      const chunks: Buffer[] = []
      request.on('data', (chunk: Buffer) => chunks.push(chunk))
      request.on('end', () => {
        const where = request.url ?? ''
        const text = Buffer.concat(chunks).toString()
        const body = text.startsWith('{') ? (JSON.parse(text) as Json) : new URLSearchParams(text)
        paper.asked.push({ path: where, body, authorization: request.headers.authorization })
        const answer = body instanceof URLSearchParams ? paper.raw[where]?.(body) : undefined
        if (answer !== undefined) {
          answer(response)
          return
        }
        const found = paper.documents[where]
        const [status, document] =
          typeof found === 'function'
            ? found(body)
            : [found === undefined ? 404 : where === '/register' ? 201 : 200, found ?? {}]
        response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(document))
      })
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  })
  afterAll(() => void server.close())
  beforeEach(async () => {
    directory = await mkdtemp(path.join(os.tmpdir(), 'extauth-discovery-'))
    paper.asked.length = 0
    paper.shown.length = 0
    paper.raw = {}
    paper.documents = {
      [RESOURCE_METADATA]: {
        resource: `${origin()}/mcp`,
        authorization_servers: [`${origin()}/as`],
        scopes_supported: ['files'],
      },
      [AS_METADATA]: paper.metadata(),
      '/register': { client_id: 'registered', token_endpoint_auth_method: 'none' },
      '/token': { access_token: 'access', token_type: 'Bearer', expires_in: 300, refresh_token: 'refresh' },
    }
  })
  afterEach(() => rm(directory, { recursive: true }))
  return paper
}
