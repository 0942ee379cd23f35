import Fastify, { type FastifyInstance } from 'fastify'
import type { Clock } from '../../src/core/index.ts'
import { createClients, type LabClient } from '../identity/clients.ts'
import { formOf, OAuthRefusal } from '../identity/oauth-error.ts'
import { listenOnLoopback } from '../listen.ts'
import { createWorkspaceLogins, type WorkspaceLogins, type WorkspaceUser } from './logins.ts'

/** The accounts of the workspace: the lab's users under its own numbers. */
export const WORKSPACE_USERS: readonly WorkspaceUser[] = [
  { id: 7001, login: 'alice', mail: 'alice@workspace.example' },
  { id: 7002, login: 'bob', mail: 'bob@workspace.example' },
  { id: 7003, login: 'carol', mail: 'carol@workspace.example' },
]

export interface LabWorkspaceOptions {
  /** Port on loopback; 0 takes a free one. */
  readonly port: number
  /** The one application that may log users in. */
  readonly client: Required<Pick<LabClient, 'id' | 'secret' | 'redirectUris'>>
  readonly clock: Clock
  readonly users?: readonly WorkspaceUser[]
  /** Life of an access token in seconds. Default 300. */
  readonly accessSeconds?: number
}

export interface LabWorkspace {
  readonly url: string
  /** The user of an access token; undefined for an invalid or expired one. */
  verify: WorkspaceLogins['verify']
  /** Ends everything that was issued to a user. */
  revoke: WorkspaceLogins['revoke']
  close(): Promise<void>
}

const escape = (text: string) => text.replace(/[&<>"']/g, (char) => `&#${char.charCodeAt(0)};`)

function loginPage(login: string, users: readonly WorkspaceUser[]): string {
  const buttons = users.map(
    (user) => `<p><button name="user" value="${escape(user.login)}">${escape(user.login)}</button>`,
  )
  return [
    '<!doctype html><meta charset="utf-8"><title>extauth lab workspace</title>',
    '<h1>Let the application into the workspace?</h1><p>This is a demo service.</p>',
    `<form method="post" action="/login"><input type="hidden" name="login" value="${escape(login)}">`,
    ...buttons,
    '</form>',
  ].join('\n')
}

/**
 * Starts a provider of plain OAuth 2.0 whose token response is nested and whose users are found by a number, strict in
 * everything else: exact redirect URIs, S256, HTTP Basic, codes and refresh tokens valid for one use. Throws `PortInUse`.
 */
export async function startLabWorkspace(options: LabWorkspaceOptions): Promise<LabWorkspace> {
  const { client, clock, users = WORKSPACE_USERS } = options
  const clients = createClients([{ ...client, may: ['authorization_code'] }])
  const logins = createWorkspaceLogins(client, users, clock, options.accessSeconds)
  const app = createApp()

  app.get('/oauth/authorize', async (request, reply) => {
    const query = formOf(new URL(request.raw.url ?? '/', 'http://lab').searchParams)
    if (query.require('client_id') !== client.id) throw new OAuthRefusal('invalid_request', 'client_id is not known')
    return reply.type('text/html; charset=utf-8').send(loginPage(logins.begin(query), users))
  })
  app.post('/login', async (request, reply) => {
    const form = formOf(request.body)
    return reply.redirect(logins.finish(form.require('login'), form.require('user')), 303)
  })
  app.post('/oauth/token', async (request, reply) => {
    void reply.header('cache-control', 'no-store')
    const form = formOf(request.body)
    clients.authenticate(request.headers.authorization, form)
    return logins.redeem(form)
  })
  app.get('/users/me', (request) => {
    const token = /^Bearer ([\w-]+)$/.exec(request.headers.authorization ?? '')?.[1]
    const issued = token === undefined ? undefined : logins.verify(token)
    if (issued === undefined) throw new OAuthRefusal('invalid_token', 'the access token is not valid', { status: 401 })
    const { id, login, mail } = issued.user
    return { id, login, profile: { mail } }
  })
  await app.ready()
  const listening = await listenOnLoopback(options.port, (request, response) => app.routing(request, response))
  const close = async () => {
    await listening.close()
    await app.close()
  }
  return { url: listening.url, verify: (token) => logins.verify(token), revoke: (user) => logins.revoke(user), close }
}

function createApp(): FastifyInstance {
  const app = Fastify({ logger: false, forceCloseConnections: true, bodyLimit: 64 * 1024 })
  app.addContentTypeParser('application/x-www-form-urlencoded', { parseAs: 'string' }, (_request, body, done) =>
    done(null, new URLSearchParams(String(body))),
  )
  app.setErrorHandler((error, _request, reply) => {
    if (!(error instanceof OAuthRefusal)) return reply.code(500).send({ ok: false, error: 'server_error' })
    return reply.code(error.status).headers(error.headers).send({ ok: false, error: error.error })
  })
  return app
}
