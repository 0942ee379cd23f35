import {
  asFailure,
  type InProcessIssuer,
  type LocalHandler,
  type SecretForm,
  type SecretHandle,
  type UpstreamTokens,
} from '../core/index.ts'
import type { SecretRef } from '../fields/index.ts'
import { secretsNamedBy, upstreamClient } from '../resources/index.ts'
import { createSeal, type Seal } from '../storage/index.ts'
import { addressesOf, type Addresses } from './addresses.ts'
import { createTakeAssertion } from './clients/assertion.ts'
import { createAuthenticateClient } from './clients/authentication.ts'
import { authMethodsOf, grantTypesOf, readsDocuments } from './clients/client.ts'
import { openClients } from './clients/open-clients.ts'
import type { AuthServerConfig } from './config.ts'
import { createClientNetwork } from './client-network.ts'
import type { Audit, AuthServerDeps } from './deps.ts'
import { ID_JAG_PROFILE, type Offers } from './discovery.ts'
import { createEndpoints } from './endpoints.ts'
import { openGrants } from './grants/open-grants.ts'
import { createKeyRing, createSealingSecrets } from '../signing/index.ts'
import { lifespansOf } from './lifespans.ts'
import { createAuthorize } from './login/authorize.ts'
import { createConclude } from './login/conclude.ts'
import { createConsentStep } from './login/consent.ts'
import { createUpstreamRedirects } from './login/upstream-redirects.ts'
import type { LoginParts } from './login/parts.ts'
import { createPendingLogins } from './login/pending.ts'
import { createPersonLogins, type PersonLogins, type PersonSteps } from './login/person-logins.ts'
import { createStoredConsents } from './login/stored-consents.ts'
import { createTickets } from './login/tickets.ts'
import { createOwnIssuer } from './own-issuer.ts'
import { createLimit } from './rates.ts'
import { type ResourceNames, resourceNamesOf } from './resource-names.ts'
import { createClaimsRequests } from './sessions/claims-requests.ts'
import { createUpstreamSessions } from './sessions/sessions.ts'
import { claimNames } from './tokens/claims.ts'
import { createCodes } from './tokens/codes.ts'
import { createFamilies } from './tokens/families.ts'
import { createIssueToken } from './tokens/issue.ts'
import { createTokenService } from './tokens/token-service.ts'
import { createUpstream } from '../upstreams/index.ts'
import { createUpstreamRegistrations } from './upstream-registrations.ts'

/** The server's part of `/readiness`. */
export interface AuthServerReadiness {
  /** False while logins are impossible: a secret or the store is missing. */
  readonly isReady: boolean
  /** Missing parts, and single-replica restrictions; a sentence each. */
  readonly remarks: readonly string[]
}

/** An embedded authorization server with one configuration. Its state is in the store, which outlives it. */
export interface AuthServer {
  /** `namespace/name` of its document. */
  readonly name: string
  readonly addresses: Addresses
  readonly handlers: readonly LocalHandler[]
  readonly issuer: InProcessIssuer
  readonly upstreamTokens: UpstreamTokens
  readonly persons: PersonLogins
  readiness(): AuthServerReadiness
  /**
   * Resolves after the first attempt to read the revoked sessions, even a failed one; until then requests with this
   * server's tokens get 503. Activate a server after it.
   */
  opened(): Promise<void>
  /** Configuration warnings; a sentence each. */
  readonly warnings: readonly string[]
  close(): Promise<void>
}

/**
 * Opens a server; fetches nothing. Throws `config_error` for invalid keys, secrets, lifespans and redirect URIs;
 * waits for missing secrets.
 */
export function openAuthServer(config: AuthServerConfig, deps: AuthServerDeps): AuthServer {
  const { spec } = config
  const { clock, log, metrics, store } = deps
  const clientNetwork = createClientNetwork()
  const audit: Audit = (notice) =>
    deps.audit.notice({ ...notice, component: config.name, client: clientNetwork.address })
  const runtime = { clock, log, metrics }
  const addresses = addressesOf(config)
  const [resources, lifespans] = [resourceNamesOf(config), lifespansOf(spec)]
  const { handlesOf, ring, secrets, seal } = openKeys(config, deps, audit)
  const upstreams = openUpstreams(spec, addresses, seal, deps)
  const upstreamLooks = [...handlesOf(secretsOfUpstreams(spec)), ...tokensOfUpstreams(spec, deps)].map(
    (handle) => () => handle.current(),
  )
  const forwardClaims = spec.forwardClaims ?? []
  const sessions = createUpstreamSessions({
    issuer: spec.issuer,
    upstreams,
    claimNames: claimNames(forwardClaims),
    longestTokenMs: Math.max(lifespans.accessMs, lifespans.refreshMs),
    store,
    seal,
    ...runtime,
  })
  const grantTypes = grantTypesOf(spec)
  const { outbound, clients, capabilities } = openClients(config, deps, seal, { resources, grantTypes, clientNetwork })
  const codes = createCodes(store, seal, { clock, lifespanMs: lifespans.codeMs })
  const families = createFamilies(store, seal, { clock, lifespanMs: lifespans.refreshMs })
  const state = { resources, clients, codes }
  const issue = createIssueToken({ issuer: spec.issuer, ...runtime, audit, forwardClaims, ring })
  const issued = { ...runtime, lifespans, resources, issue }
  const tokens = createTokenService({ ...issued, audit, codes, families, sessions })
  const { withoutLogin, ...grants } = openGrants(spec, { ...issued, tokenUrl: addresses.tokenUrl }, deps)
  const audiences = new Set([spec.issuer, addresses.tokenUrl, addresses.revokeUrl])
  const takeAssertion = createTakeAssertion({ audiences, store, outbound, clientNetwork, clock, log })
  const login: LoginParts = {
    ...runtime,
    ...state,
    audit,
    addresses,
    upstreams,
    claimsRequests: createClaimsRequests(store, seal),
    pending: createPendingLogins(store, seal),
    tickets: createTickets(seal, clock),
    consents: createStoredConsents(spec.issuer, seal, clock),
    isEnded: (tsid) => sessions.isEnded(tsid),
  }
  const steps = stepsOf(login, createPersonLogins(login, seal, config.remembersPersons === true))
  const limits = limitsOf(spec, clock)
  const handlers = createEndpoints({
    addresses,
    resources,
    offers: offersOf(spec, grantTypes),
    clients,
    capabilities,
    tokens,
    withoutLogin,
    authenticateClient: createAuthenticateClient(clients, takeAssertion),
    ring,
    ...steps,
    clientNetwork,
    limits,
    clock,
    log,
    audit,
  })

  const isAlone = tellKind(config.name, deps) === 'kvstore' && (ring.isEphemeral || secrets.isEphemeral)
  return {
    name: config.name,
    addresses,
    handlers,
    issuer: createOwnIssuer(spec.issuer, { ring, sessions, clock }),
    upstreamTokens: sessions,
    persons: steps.persons,
    opened: () => sessions.opened(),
    warnings: warningsOf(config, resources, isAlone),
    readiness: () =>
      readinessOf([() => ring.keys(), () => secrets.current(), () => sessions.isEnded(''), ...upstreamLooks], store, [
        ...(clients.problem === undefined ? [] : [clients.problem]),
        ...(isAlone ? [ONE_REPLICA] : []),
      ]),
    async close() {
      await sessions.close()
      await Promise.all([
        outbound.close(),
        grants.close(),
        ...[...upstreams.values()].map((upstream) => upstream.close()),
      ])
    },
  }
}

/** Configuration warnings of a server. */
function warningsOf({ name, spec }: AuthServerConfig, { scopes }: ResourceNames, isAlone: boolean): readonly string[] {
  const unknown = (spec.baselineClientScopes ?? []).filter((scope) => !scopes.has(scope))
  return [
    ...(isAlone ? [ONE_REPLICA] : []),
    ...(unknown.length === 0
      ? []
      : [`"baselineClientScopes" has scopes of no route, which no client gets: ${unknown.join(', ')}`]),
  ].map((warning) => `authorization server ${name}: ${warning}`)
}

/** Opens the keys and secrets of a server and checks each once. Throws permanent errors. */
function openKeys({ spec }: AuthServerConfig, { clock, log, ephemeral, secrets: known }: AuthServerDeps, audit: Audit) {
  const rotated = (name: string): void =>
    audit({ type: 'key_rotated', outcome: 'success', target: { type: 'keys', name } })
  const handlesOf = (refs: typeof spec.hmacSecretRefs = [], form?: SecretForm): readonly SecretHandle[] =>
    refs.map((ref) => known.handle(ref, form))
  const ring = createKeyRing(
    handlesOf(spec.signingKeySecretRefs),
    () => ephemeral.signing(),
    log,
    () => rotated('signing keys'),
  )
  const secrets = createSealingSecrets(
    handlesOf(spec.hmacSecretRefs, 'bytes'),
    () => ephemeral.sealing(),
    log,
    () => rotated('HMAC secrets'),
  )
  for (const look of [() => ring.keys(), () => secrets.current()]) checkAtStart(look)
  return { handlesOf, ring, secrets, seal: createSeal(secrets, clock) }
}

function openUpstreams(spec: AuthServerConfig['spec'], addresses: Addresses, seal: Seal, deps: AuthServerDeps) {
  const registration = {
    kept: createUpstreamRegistrations(deps.store, seal),
    redirectUris: (upstream: string) => addresses.redirectUrisOf(upstream),
  }
  return new Map(
    spec.upstreamProviders.map((provider) => [provider.name, createUpstream(provider, { ...deps, registration })]),
  )
}

/** Ready if every secret of `needed` can be read and the store is up; `remarks` restrict nothing. */
export function readinessOf(
  needed: readonly (() => unknown)[],
  store: Pick<AuthServerDeps['store'], 'health'>,
  remarks: readonly string[] = [],
): AuthServerReadiness {
  const missing = needed.flatMap((look) => problemOf(look))
  const { isUp, detail } = store.health()
  const down = isUp ? [] : [`the store is down${detail === undefined ? '' : `: ${detail}`}`]
  return { isReady: missing.length + down.length === 0, remarks: [...missing, ...down, ...remarks] }
}

/** The capabilities a server advertises. */
const offersOf = (spec: AuthServerConfig['spec'], grantTypes: Offers['grantTypes']): Offers => ({
  grantTypes,
  grantProfiles: spec.identityAssertions === undefined ? [] : [ID_JAG_PROFILE],
  authMethods: authMethodsOf(spec),
  readsDocuments: readsDocuments(spec),
})

/** The steps of a login, from the client's request to the code. */
function stepsOf(login: LoginParts, persons: PersonSteps) {
  const conclude = createConclude(login, persons)
  const upstreamRedirects = createUpstreamRedirects(login, conclude, persons)
  const consent = createConsentStep(login, upstreamRedirects, conclude)
  return { authorize: createAuthorize(login, consent), consent, upstreamRedirects, persons }
}

function limitsOf({ limits }: AuthServerConfig['spec'], clock: AuthServerDeps['clock']) {
  const { registration, authorize, token } = limits ?? DEFAULT_LIMITS
  return {
    registration: createLimit(registration, clock),
    authorize: createLimit(authorize, clock),
    token: createLimit(token, clock),
  }
}

const secretsOfUpstreams = (spec: AuthServerConfig['spec']): SecretRef[] =>
  secretsNamedBy({ type: 'embeddedAuthServer' as const, spec })
    .filter(({ path }) => path[0] === 'upstreamProviders')
    .map(({ value }) => value)

const tokensOfUpstreams = ({ upstreamProviders }: AuthServerConfig['spec'], { tokenFile }: AuthServerDeps) =>
  upstreamProviders
    .map(upstreamClient)
    .flatMap((client) => (client?.method === 'tokenFile' ? [tokenFile(client.tokenFile?.path)] : []))

/** Reports the kind of store in a gauge: store alerts concern only servers that use it. */
function tellKind(server: string, { store, metrics }: AuthServerDeps) {
  const { kind } = store.health()
  metrics
    .gauge('extauth_authserver_uses_store', 'Whether logins of a server need the store (kvstore).', ['server'], 'max')
    .with(server)
    .set(kind === 'kvstore' ? 1 : 0)
  return kind
}

const ONE_REPLICA =
  'one replica only: without hmacSecretRefs and signingKeySecretRefs, replicas cannot verify each other’s tokens'

const DEFAULT_LIMITS = {
  registration: { perSecond: 1, burst: 10 },
  authorize: { perSecond: 5, burst: 50 },
  token: { perSecond: 20, burst: 100 },
} as const

/** Throws permanent errors of a lookup; a missing secret may still appear. */
export function checkAtStart(look: () => unknown): void {
  try {
    look()
  } catch (error) {
    if (asFailure(error).code !== 'secret_unavailable') throw error
  }
}

/** Why a lookup fails now. */
function problemOf(look: () => unknown): string[] {
  try {
    look()
    return []
  } catch (error) {
    const { code, detail } = asFailure(error)
    return [detail ?? code]
  }
}
