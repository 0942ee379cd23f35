import { readFile } from 'node:fs/promises'
import path from 'node:path'
import type { JSONWebKeySet } from 'jose'
import { HUB_ROLE, POD_TOKEN, ROLES, startAws } from '../../lab/cli/lab-aws.ts'
import { LAB_PROXY, mountsFor, readClients, secretOf } from '../../lab/cli/lab-parties.ts'
import {
  createLabFaults,
  type LabBackend,
  type LabFaults,
  type LabIdentityProvider,
  type LabMetadata,
  type LabSts,
  type LabWorkspace,
  type RecordedRequest,
  startLabBackend,
  startLabIdentityProvider,
  startLabSts,
  startLabWorkspace,
} from '../../lab/index.ts'
import { labConfig } from '../../src/cli/index.ts'
import { type Gate, openGate } from './gate.ts'

/** Users who log in at the proxy; the identity provider and the workspace know all of them. */
export const LOGIN_USERS: readonly string[] = Array.from({ length: 40 }, (_, index) => `user-${100 + index}`)

/** People who connect accounts; both services know them, too. */
export const PEOPLE: readonly string[] = Array.from({ length: 60 }, (_, index) => `person-${100 + index}`)

/** Everything that the proxies talk to but Redis, each behind a gate. */
export interface Services {
  readonly identity: LabIdentityProvider
  readonly sts: LabSts
  readonly workspace: LabWorkspace
  readonly backend: LabBackend
  readonly metadata: LabMetadata
  readonly faults: LabFaults
  readonly gates: Readonly<Record<'identity' | 'identityTls' | 'sts' | 'workspace' | 'backend', Gate>>
  /** Where the proxies find their own AWS identity. */
  readonly env: Readonly<Record<string, string>>
  close(): Promise<void>
}

export interface StandInOptions {
  /** Where clients find the proxies. */
  readonly proxyUrl: string
  readonly onRequest: (record: RecordedRequest) => void
  /** Whether the backend takes this as the fixed bearer token, now. */
  readonly isStaticToken: (token: string) => boolean
}

/** Invalid responses of an authorization server: no token, no keys, nothing active. */
const EMPTY_ANSWER =
  'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}'
/** Keys of the process and of the hub end between one reload and the next. */
const KEYS_SECONDS = 60
/** The proxy's own token has to be renewed during a fault of its endpoint. */
const OWN_TOKEN_SECONDS = 20
/** Tokens of the workspace have to be refreshed while their users call. */
const WORKSPACE_SECONDS = 60
const PROMPTLY = { now: () => Date.now() }

/** Starts them as `extauth lab` does, on other addresses. */
export async function openServices(options: StandInOptions): Promise<Services> {
  const { proxyUrl } = options
  const faults = createLabFaults()
  const gates = {
    identity: await openGate({ rubbish: EMPTY_ANSWER }),
    identityTls: await openGate({ scheme: 'https' }),
    sts: await openGate({ rubbish: EMPTY_ANSWER }),
    workspace: await openGate({ rubbish: EMPTY_ANSWER }),
    backend: await openGate(),
  }
  const callbacks = ['/upstream', '/upstream-exchange', '/xaa', '']
    .map((route) => `${route}/oauth/callback`)
    .concat('/connect/callback')
    .map((path) => proxyUrl + path)
  const users = [...LOGIN_USERS, ...PEOPLE]
  const clients = (await readClients(proxyUrl)).map((client) => {
    if (client.id === LAB_PROXY) return Object.assign({}, client, { tokenSeconds: OWN_TOKEN_SECONDS })
    return client.redirectUris === undefined ? client : Object.assign({}, client, { redirectUris: callbacks })
  })
  const identity = await startLabIdentityProvider({
    port: 0,
    publicUrl: gates.identity.url,
    tls: {
      port: 0,
      publicUrl: gates.identityTls.url,
      certificate: await readFile(path.join(labConfig(), 'secrets/lab-idp-tls/tls.crt'), 'utf8'),
      key: await secretOf('lab-idp-tls', 'tls.key'),
    },
    clients,
    clock: PROMPTLY,
    faults,
    users: users.map((subject) => ({ subject, claims: { groups: ['dev'], email: `${subject}@example.com` } })),
  })
  const roles = ROLES.map((role) =>
    role.arn === HUB_ROLE ? Object.assign({}, role, { sessionSeconds: KEYS_SECONDS }) : role,
  )
  const trust = { issuer: identity.url, keys: identity.jwks, roles }
  const sts = await startLabSts({ port: 0, trust, clock: PROMPTLY, faults })
  const workspace = await startLabWorkspace({
    port: 0,
    client: {
      id: 'lab-workspace',
      secret: await secretOf('lab-workspace', 'client-secret'),
      redirectUris: callbacks,
    },
    clock: PROMPTLY,
    accessSeconds: WORKSPACE_SECONDS,
    users: users.map((login, index) => ({ id: 7_000 + index, login, mail: `${login}@workspace.example` })),
  })
  const { metadata, env } = await startAws(0, await secretOf(POD_TOKEN, 'token'), sts, KEYS_SECONDS)
  const known = await mountsFor(identity, sts, workspace, proxyUrl)
  const backend = await startLabBackend({
    port: 0,
    clock: PROMPTLY,
    keep: 100,
    onRequest: options.onRequest,
    mounts: {
      ...known,
      '/header-injection': { kind: 'none' },
      '/bearer-token': {
        kind: 'known',
        verify: (token) => (options.isStaticToken(token) ? { token: 'the one that it knows' } : undefined),
      },
      '/xaa': { ...known['/xaa'], keys: keysOf(proxyUrl) },
    },
  })
  const [plain, secure] = identity.addresses
  for (const [gate, url] of [
    [gates.identity, plain],
    [gates.identityTls, secure],
    [gates.sts, sts.url],
    [gates.workspace, workspace.url],
    [gates.backend, backend.url],
  ] as const)
    gate.target = Number(new URL(url ?? '').port)

  const close = async (): Promise<void> => {
    await Promise.all([backend.close(), workspace.close(), sts.close(), identity.close(), metadata.close()])
    await Promise.all(Object.values(gates).map((gate) => gate.close()))
  }
  return { identity, sts, workspace, backend, metadata, faults, gates, env, close }
}

/** The keys of the proxies' own authorization server; the last ones while it cannot be asked, as a careful server has it. */
function keysOf(proxyUrl: string): () => Promise<JSONWebKeySet> {
  let last: JSONWebKeySet = { keys: [] }
  return async () => {
    // Without any it waits longer: a busy machine must not reject all callers.
    const signal = AbortSignal.timeout(last.keys.length === 0 ? 10_000 : 2_000)
    const response = await fetch(`${proxyUrl}/.well-known/jwks.json`, { signal }).catch(() => undefined)
    if (response?.status === 200) last = (await response.json().catch(() => last)) as JSONWebKeySet
    return last
  }
}
